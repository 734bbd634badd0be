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
	table.Add(1, to(2))
	table.Add(2, to(2))
	table.Add(2, to(2))
	users := table.Users(to(2))
	if slices.Sort(users); !slices.Equal(users, []int{1, 2}) {
		t.Errorf("users %v", users)
	}
	table.Add(1, to(3))
	if !table.Uses(1, to(3)) || table.Uses(1, to(2)) || !table.Uses(2, to(2)) {
		t.Error("a user is not where it was put")
	}
	table.Remove(2)
	table.Remove(2)
	if table.Uses(2, to(2)) || len(table.Users(to(2))) != 0 {
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
	table.Add(1, to(2))
	table.Add(2, to(3))
	if !added(table) || added(table) {
		t.Error("two new destinations are not one value")
	}
	if n := len(table.Unlisted()); n != 2 {
		t.Errorf("%d destinations are new, not 2", n)
	}
	table.Add(3, to(2))
	if added(table) || len(table.Unlisted()) != 0 {
		t.Error("a destination in use is new")
	}
	table.Add(4, to(4))
	if len(table.Destinations()) != 3 || len(table.Unlisted()) != 0 {
		t.Error("what Destinations listed is new")
	}
	table.Remove(4)
	table.Add(4, to(4))
	if got := table.Unlisted(); !slices.Equal(got, []Destination{to(4)}) {
		t.Errorf("new is %v", got)
	}
}
