package crowd

import (
	"net/netip"
	"testing"
)

// A holder is at an address, and may have his place for nothing.
type holder struct {
	at   netip.Addr
	idle bool
}

func (h holder) of() (netip.Addr, bool) { return h.at, h.idle }

// holders are those of a row of letters, one for each place. a to d are hosts of their own; w to z
// are addresses of one network of IPv6. A capital has his place for nothing.
func holders(row string) (list []holder) {
	for _, r := range row {
		list = append(list, holder{address(r), r < 'a'})
	}
	return list
}

func address(r rune) netip.Addr {
	r |= 0x20
	if r < 'w' {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(r)})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(r)})
}

// TestPlace of four, of which an address may have three.
func TestPlace(t *testing.T) {
	const refused, free = -2, -1
	for _, tt := range []struct {
		row   string
		comes rune
		want  int
	}{
		{"", 'a', free},
		{"aa", 'a', free},
		{"aaa", 'a', refused},
		{"www", 'w', refused},
		{"aAa", 'a', 1},
		{"aaaB", 'a', refused}, // not in place of another's
		{"aaab", 'c', 0},
		{"baaa", 'c', 1},
		{"baaA", 'c', 3}, // who has it for nothing comes before who is one of several
		{"aabb", 'c', 0},
		{"aabb", 'a', refused},
		{"aaab", 'b', 0},
		{"aabc", 'b', refused}, // nobody would have less than the other
		{"aaaw", 'x', 0},       // who has come from there already keeps nobody out
		{"aawx", 'y', refused},
		{"xyza", 'a', refused}, // not in place of the only one of an address
		{"xxya", 'a', refused},
		{"xxxa", 'a', 0},
		{"abcd", 'w', refused},
		{"abCd", 'w', 2},
		{"aBcB", 'B', 1},
		{"wwwx", 'y', 0}, // of one network, as on one link
		{"xwwx", 'y', 0},
		{"xwww", 'y', 1},
		{"wxyz", 'w', refused},
		{"wxyz", 'a', 0},
		{"wwxa", 'y', 0},
		{"WXXA", 'y', 1}, // of the host and then of the address that has most
		{"aaww", 'x', 2},
	} {
		i, ok := Place(holders(tt.row), Limits{Places: 4, Each: 3}, address(tt.comes), holder.of)
		if !ok {
			i = refused
		}
		if i != tt.want {
			t.Errorf("%c to %q: %d, want %d", tt.comes, tt.row, i, tt.want)
		}
	}
}
