package nic

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// empty fails the test when a file is left in a directory.
func empty(t *testing.T, dir string) {
	t.Helper()
	if left := entries(dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestSteerAndClose makes the three rules and leaves those of others, which it does not touch.
func TestSteerAndClose(t *testing.T) {
	for _, chooses := range []bool{false, true} {
		dir := t.TempDir()
		c := newFakeCard()
		c.chooses = chooses
		other := Rule{Location: 15, Kind: V4, Queue: 2}
		c.add(other)
		binary.BigEndian.PutUint16(c.rules[15][offValues+offDstPort4:], 53)
		before := maps.Clone(c.rules)
		s, err := steer(table{iface, c.call}, 3, dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.table.rules()
		if err != nil || len(got) != 4 || len(s.Refused) != 0 || s.String() != "" {
			t.Fatalf("%v, %v, refused %v", got, err, s.Refused)
		}
		for _, k := range Kinds() {
			card := Card{Rules: got, Rings: 8}
			if queues, r := card.Landing(k); !slices.Equal(queues, []int{3}) || r == nil {
				t.Errorf("%v comes in on %v by %v", k, queues, r)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil { // idempotent
			t.Error(err)
		}
		if !maps.EqualFunc(c.rules, before, slices.Equal) {
			t.Errorf("rules %v are left", c.places())
		}
		empty(t, dir)
	}
}

// TestSteerRulesOfOthers: one that does the same is used and stays, one that does something
// else is named, and nothing of ours is left then.
func TestSteerRulesOfOthers(t *testing.T) {
	dir := t.TempDir()
	c := newFakeCard()
	c.add(Rule{Location: 7, Kind: V4, Queue: 1})
	s, err := steer(table{iface, c.call}, 1, dir)
	if err != nil || len(s.Rules()) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := s.Close(); err != nil || !slices.Equal(c.places(), []uint32{7}) {
		t.Errorf("left %v, %v", c.places(), err)
	}
	c.add(Rule{Location: 8, Kind: V6, Queue: 2})
	_, err = steer(table{iface, c.call}, 1, dir)
	if !errors.Is(err, ErrSteer) || !strings.Contains(err.Error(),
		"flow rule 8 sends RoCE over IPv6 to queue 2, not to queue 1; if nobody needs it: "+
			"ethtool -N lo delete 8") || !slices.Equal(c.places(), []uint32{7, 8}) {
		t.Errorf("%v, rules %v", err, c.places())
	}
	empty(t, dir)
}

// TestSteerRefused: a card that takes a part says which, one that takes nothing is an error
// with what to do instead.
func TestSteerRefused(t *testing.T) {
	dir := t.TempDir()
	c := newFakeCard()
	c.refuses = map[Kind]bool{V6: true, V1: true} // as ixgbe
	s, err := steer(table{iface, c.call}, 0, dir)
	if err != nil || s.String() != "RoCE over IPv6 (operation not supported), RoCE v1 "+
		"(operation not supported)" || len(s.Rules()) != 1 {
		t.Fatalf("%v, %v", s, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	full := newFakeCard()
	full.room = 1
	full.add(Rule{Kind: V1, Queue: 0})
	for _, c := range []*fakeCard{
		{none: true}, {room: 0}, {rules: map[uint32][]byte{}, room: 4, refuses: map[Kind]bool{
			V4: true, V6: true,
		}}, full,
	} {
		was := len(c.rules)
		_, err = steer(table{iface, c.call}, 0, dir)
		if !errors.Is(err, ErrSteer) || len(c.rules) != was {
			t.Errorf("%v, rules %v", err, c.places())
		}
		if c != full && (!errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "ethtool -L lo combined 1")) {
			t.Errorf("%v does not say what to do", err)
		}
		empty(t, dir)
	}
}

// crash leaves what a process leaves that is killed after some of its changes.
func crash(t *testing.T, c *fakeCard, dir string, after int) {
	t.Helper()
	name, err := recordName(iface, dir)
	if err != nil {
		t.Fatal(err)
	}
	var at []byte
	call := func(b []byte) error {
		err := c.call(b)
		if c.changes == after && at == nil {
			at, _ = os.ReadFile(name) // as it was in the middle of the call
		}
		return err
	}
	s, err := steer(table{iface, call}, 1, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.made[after:] { // it did not come to these
		if err := s.table.remove(r.Location); err != nil {
			t.Fatal(err)
		}
	}
	s.file.file.Close() // the lock goes, the file stays
	if err := os.WriteFile(name, at, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSteerAfterCrash: whenever a process dies, the next one on the interface removes what it
// made, be it one that steers or not, and what somebody changed since is left.
func TestSteerAfterCrash(t *testing.T) {
	for after := 1; after <= 3; after++ {
		for _, chooses := range []bool{false, true} {
			c := newFakeCard()
			c.chooses = chooses
			c.add(Rule{Location: 9, Kind: Other, Queue: 5})
			dir := t.TempDir()
			crash(t, c, dir, after)
			if len(c.rules) != 1+after {
				t.Fatalf("%d rules", len(c.rules))
			}
			file, err := openRecord(iface, dir, false)
			if err != nil || file == nil {
				t.Fatal(file, err)
			}
			if err := file.close(file.sweep(table{iface, c.call})); err != nil {
				t.Error(err)
			}
			if !slices.Equal(c.places(), []uint32{9}) {
				t.Errorf("after %d, chooses %v: left %v", after, chooses, c.places())
			}
			empty(t, dir)
			// One that steers elsewhere, and finds the rule of IPv4 changed.
			c.changes = 0
			crash(t, c, dir, after)
			first := c.places()[0]
			if !chooses {
				first = 15
			}
			c.add(Rule{Location: first, Kind: V1, Queue: 4})
			if _, err = steer(table{iface, c.call}, 2, dir); !errors.Is(err, ErrSteer) {
				t.Errorf("%v", err)
			}
			if want := []uint32{first, 9}; !slices.Equal(c.places(), slices.Sorted(
				slices.Values(want))) {
				t.Errorf("after %d, chooses %v: left %v, want %v", after, chooses, c.places(), want)
			}
		}
	}
}

// TestSteerTwice: only one at a time, and the rules of one who lives are not swept.
func TestSteerTwice(t *testing.T) {
	dir := t.TempDir()
	c := newFakeCard()
	s, err := steer(table{iface, c.call}, 1, dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = steer(table{iface, c.call}, 2, dir)
	if !errors.Is(err, ErrSteer) || !strings.Contains(err.Error(), "steers on lo already") {
		t.Error(err)
	}
	if err := Sweep(iface, dir); err != nil || len(c.rules) != 3 {
		t.Errorf("%v, rules %v", err, c.places())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := Sweep(iface, filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
}

// TestSteerCannotRemove: what could not be removed is tried again by the next one.
func TestSteerCannotRemove(t *testing.T) {
	dir := t.TempDir()
	c := newFakeCard()
	stuck := true
	call := func(b []byte) error {
		if stuck && binary.NativeEndian.Uint32(b) == cmdRuleDelete {
			return unix.EBUSY
		}
		return c.call(b)
	}
	s, err := steer(table{iface, call}, 1, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, unix.EBUSY) {
		t.Error(err)
	}
	if _, err := steer(table{iface, call}, 1, dir); !errors.Is(err, unix.EBUSY) {
		t.Error(err)
	}
	stuck = false
	if s, err = steer(table{iface, call}, 2, dir); err != nil {
		t.Fatal(err)
	}
	if r := s.Rules(); len(c.rules) != 3 || len(r) != 3 || r[0].Queue != 2 {
		t.Errorf("rules %v, of ours %v", c.places(), r)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, dir)
}

// TestSteerLoopback: the driver of a real interface has no rules.
func TestSteerLoopback(t *testing.T) {
	dir := t.TempDir()
	if _, err := Steer(iface, 0, dir); !errors.Is(err, ErrSteer) {
		t.Error(err)
	}
	empty(t, dir)
}
