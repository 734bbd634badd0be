package pathtable

import (
	"slices"
	"testing"

	"xroce/roce/wire"
)

// to is the n-th destination of the tests.
func to(n byte) Destination {
	return DestinationOf(&wire.Path{
		Framing: wire.FramingV2IPv4,
		Src:     wire.GIDFromIPv4([4]byte{10, 0, 0, 1}),
		Dst:     wire.GIDFromIPv4([4]byte{10, 0, 0, n}),
	})
}

// by are the n-th addresses of the tests.
func by(n byte) MACs { return MACs{Src: [6]byte{2}, Dst: [6]byte{2, n}} }

// added takes the value of Added, if there is one.
func added(t *Table[int]) bool {
	select {
	case <-t.Added():
		return true
	default:
		return false
	}
}

// TestUsers moves users between destinations: a destination is in the table as long
// as it has one.
func TestUsers(t *testing.T) {
	table := New[int]()
	table.Add(1, to(2), by(1))
	table.Add(2, to(2), by(1))
	table.Add(2, to(2), by(1))
	if users := table.Tell(to(2), by(1)); users != nil {
		t.Errorf("users %v are told by what they go", users)
	}
	users := table.Tell(to(2), by(2))
	if slices.Sort(users); !slices.Equal(users, []int{1, 2}) {
		t.Errorf("users %v", users)
	}
	if users := table.Tell(to(2), by(2)); users != nil {
		t.Errorf("users %v are told once more", users)
	}
	table.Add(1, to(3), by(1))
	if !table.Uses(1, to(3)) || table.Uses(1, to(2)) || !table.Uses(2, to(2)) {
		t.Error("a user is not where it was put")
	}
	table.Remove(2)
	table.Remove(2)
	if table.Uses(2, to(2)) || len(table.Tell(to(2), by(3))) != 0 {
		t.Error("a removed user is still there")
	}
	if got := table.Destinations(); !slices.Equal(got, []Destination{to(3)}) {
		t.Errorf("destinations %v", got)
	}
}

// TestUnlisted lists each destination once since it came, and Added says when there
// is one to list.
func TestUnlisted(t *testing.T) {
	table := New[int]()
	if added(table) {
		t.Error("an empty table has a new destination")
	}
	table.Add(1, to(2), by(1))
	table.Add(2, to(3), by(1))
	if !added(table) || added(table) {
		t.Error("two new destinations are not one value")
	}
	if n := len(table.Unlisted()); n != 2 {
		t.Errorf("%d destinations are new, not 2", n)
	}
	table.Add(3, to(2), by(1))
	if added(table) || len(table.Unlisted()) != 0 {
		t.Error("a destination in use is new")
	}
	table.Add(4, to(4), by(1))
	if len(table.Destinations()) != 3 || len(table.Unlisted()) != 0 {
		t.Error("what Destinations listed is new")
	}
	table.Remove(4)
	table.Add(4, to(4), by(1))
	if got := table.Unlisted(); !slices.Equal(got, []Destination{to(4)}) {
		t.Errorf("new is %v", got)
	}
}

// TestUserByOtherAddresses: a user that comes to a destination in use by other addresses than its
// users were told last is one to look at, as often as that happens. Others are not.
func TestUserByOtherAddresses(t *testing.T) {
	table := New[int]()
	check := func(what string, want bool) {
		t.Helper()
		if got := added(table); got != want {
			t.Errorf("%s: it is told: %t", what, got)
		}
		if got := len(table.Unlisted()) == 1; got != want {
			t.Errorf("%s: it is listed: %t", what, got)
		}
	}
	table.Add(1, to(2), by(1))
	check("the first", true)
	table.Add(2, to(2), by(1))
	check("as the first", false)
	table.Add(3, to(2), by(2))
	check("another way than the first", true)
	table.Tell(to(2), by(2))
	table.Add(4, to(2), by(2))
	check("as was told", false)
	table.Add(5, to(2), by(1))
	check("as was right before", true)
	table.Add(6, to(2), MACs{Src: [6]byte{4}, Dst: by(2).Dst})
	check("from another address of ours", true)
	table.Add(4, to(2), by(2))
	check("it is there", false)
	table.Add(4, to(2), by(3))
	check("it is there, and goes another way", true)
	users := table.Tell(to(2), by(2))
	if slices.Sort(users); !slices.Equal(users, []int{4, 5, 6}) {
		t.Errorf("users %v", users)
	}
	if users := table.Tell(to(3), by(2)); users != nil {
		t.Errorf("users %v of a destination that is not in use", users)
	}
}
