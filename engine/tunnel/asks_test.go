package tunnel

import (
	"errors"
	"testing"

	"xroce/encap"
	"xroce/engine/sim"
)

// TestAsks: what comes behind a later request is new, until it is older than all that are kept.
func TestAsks(t *testing.T) {
	var a asks
	for at := uint64(2 * peerPlaces); at > peerPlaces; at-- {
		if !a.isNew(at) {
			t.Fatalf("%d is not new", at)
		}
		a.note(at)
		if a.isNew(at) {
			t.Fatalf("%d is new once more", at)
		}
	}
	a.note(3 * peerPlaces)
	for at, want := range map[uint64]bool{
		0: false, 1: false, peerPlaces: false, peerPlaces + 1: false, 2 * peerPlaces: false,
		2*peerPlaces + 1: true, 3 * peerPlaces: false, 3*peerPlaces + 1: true,
	} {
		if a.isNew(at) != want {
			t.Errorf("%d is new: %t", at, !want)
		}
	}
	if len(a.late) > peerPlaces {
		t.Errorf("%d are kept", len(a.late))
	}
}

// TestAskedBehindAnother: of two queues of a peer the one that asked first may come second. Neither
// is one who repeats what he has heard; over UD, where one asks, it is.
func TestAskedBehindAnother(t *testing.T) {
	for _, over := range []Over{OverRC, OverUC, OverUD} {
		l := newLAN(t, sim.Faults{})
		c := Config{Format: encap.EoIB, Over: over, Key: testKey("one")}
		a, b := l.still(1, c, 2), l.still(2, c, 1)
		first, _, err := b.ask(&b.hello, 0)
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := b.ask(&b.hello, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := a.peers[0]
		if _, _, err := a.answer(p, second); err != nil {
			t.Errorf("%s: %v", over, err)
		}
		if _, _, err := a.answer(p, first); (err == nil) != over.connected() {
			t.Errorf("%s: the one that asked before: %v", over, err)
		}
		if _, _, err := a.answer(p, first); !errors.Is(err, ErrKey) {
			t.Errorf("%s: once more: %v", over, err)
		}
	}
}

// TestRefusedIsThere: a peer that refuses a connection is there, and so is the connection of
// before, unless it is another process.
func TestRefusedIsThere(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Over: OverUC}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	w := b.peers[0].ways[0].Load()
	if w == nil {
		t.Fatal("there is no way")
	}
	a.peers[0].incoming.Add(peerPlaces)
	_, _, err := b.dial(t.Context(), b.peers[0], b.lanes[0])
	if err == nil {
		t.Fatal("there was a place")
	}
	if !w.outlasts(err) {
		t.Errorf("the way is given up: %v", err)
	}
	if before := (&way{instance: w.instance + 1}); before.outlasts(err) {
		t.Error("the way to another process is kept")
	}
	if w.outlasts(errSilent) || w.outlasts(errCookie) {
		t.Error("the way is kept though nobody answered")
	}
}
