package bpf

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestShare: the second to attach to an interface in a process shares the program of the first.
// An address is owned as long as one of them owns it, and the program goes with the last.
func TestShare(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	first, before := n.attach(t, Options{}), n.xdpOf(t)
	second := n.attach(t, Options{Mode: Native})
	if after := n.xdpOf(t); after != before {
		t.Errorf("programs changed from %+v to %+v", before, after)
	}
	if _, err := Attach(n.dev.Index, Options{Mode: Generic}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("another mode: %v", err)
	}
	owned := func(k Key) bool {
		var v uint8
		return first.objs.Owned.Lookup(k, &v) == nil
	}
	shared, own := V1Key(ownMAC), NativeKey(ownMAC)
	for _, err := range []error{
		first.Own(shared), first.Own(shared), first.Own(own), second.Own(shared),
		second.Disown(own), first.Disown(shared), first.Disown(shared),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !owned(shared) || !owned(own) {
		t.Errorf("owned: %t, %t", owned(shared), owned(own))
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	if !owned(shared) || owned(own) {
		t.Errorf("owned after the first has left: %t, %t", owned(shared), owned(own))
	}
	if err := first.Own(own); !errors.Is(err, ErrClosed) {
		t.Errorf("own after close: %v", err)
	}
	if attached, err := second.Attached(); !attached || err != nil {
		t.Errorf("attached: %t, %v", attached, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if x := n.xdpOf(t); x.Attached {
		t.Errorf("still attached: %+v", x)
	}
	third := n.attach(t, Options{Mode: Generic})
	if third.Mode() != Generic || third.program == second.program {
		t.Errorf("a program anew: %v", third.Mode())
	}
}
