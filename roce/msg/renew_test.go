package msg

import (
	"bytes"
	"errors"
	"testing"
)

// TestSlotsAreRenewedUnderTraffic: while messages go both ways, an end gives its peer more slots,
// fewer, and as many under another key. Every message arrives once and in order, of the old rings
// nothing is left, and their keys were drawn anew.
func TestSlotsAreRenewedUnderTraffic(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed)
		a, b := w.node(Config{Slots: 4, Policy: EnlargeNever}), w.node(Config{Slots: 8})
		ca, cb := w.join(a, b, allCapabilities)
		keys := map[uint32]bool{}
		sent, received, renewed := 0, 0, 0
		for received < 400 {
			switch w.rand.IntN(12) {
			case 0, 1:
				if sent < 400 {
					s := &Send{Pieces: [][]byte{pattern(sent, 1+sent%900)}, Level: Level(sent % 4)}
					must(t, ca.Send(w.now, s))
					sent++
				}
			case 2, 3:
				r := &Receive{Pieces: [][]byte{make([]byte, 1000)}}
				must(t, b.endpoint.Receive(w.now, r))
			case 4:
				err := cb.Renew(2 + w.rand.IntN(40))
				if err == nil {
					renewed++
				} else if !errors.Is(err, ErrState) {
					t.Fatal(err)
				}
			default:
				w.step()
			}
			for r := b.endpoint.NextReceived(); r != nil; r = b.endpoint.NextReceived() {
				if !bytes.Equal(r.Pieces[0][:r.Length], pattern(received, 1+received%900)) {
					t.Fatalf("seed %d: message %d is another", seed, received)
				}
				received++
			}
			if len(cb.in) > 2 {
				t.Fatalf("seed %d: %d rings", seed, len(cb.in))
			}
			keys[cb.in[0].memory.RKey] = true
		}
		w.settle()
		if renewed < 2 || len(keys) < renewed || len(cb.in) != 1 || len(ca.lanes[small].old) != 0 {
			t.Errorf("seed %d: %d times, %d keys, rings %d and %d", seed, renewed, len(keys),
				len(cb.in), len(ca.lanes[small].old))
		}
		if n := len(a.regions); n != 2 {
			t.Errorf("seed %d: %d regions at the sender", seed, n)
		}
		if n := len(b.regions); n != 2 {
			t.Errorf("seed %d: %d regions at the receiver", seed, n)
		}
	}
}

// TestFewSlotsAreToldSoon: a peer that has fewer slots than it began with is told that they are
// free before it has used as many as it had.
func TestFewSlotsAreToldSoon(t *testing.T) {
	d := newDuo(t, Config{Slots: 64})
	must(t, d.cb.Renew(2))
	d.settle()
	for i := range 10 {
		d.send(pattern(i, 1000))
	}
}

// TestOldSlotsStayWithoutMemoryForNew: when there is no memory for other slots, the peer goes on
// with those that it has, and they can be renewed later.
func TestOldSlotsStayWithoutMemoryForNew(t *testing.T) {
	d := newDuo(t, Config{})
	must(t, d.cb.Renew(16))
	r := d.b.endpoint.NextRequest()
	d.b.endpoint.Answer(d.now, r, Memory{}, errNoMemory)
	d.send(pattern(1, 100))
	if n := d.b.endpoint.Snapshot()[RenewFailed]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	must(t, d.cb.Renew(16))
	d.settle()
	d.send(pattern(2, 100))
	if n := d.ca.lanes[small].ring.slots; n != 16 {
		t.Errorf("%d slots", n)
	}
}

// TestRenewIsRefused: fewer than two slots, more than the peer takes, and two at once.
func TestRenewIsRefused(t *testing.T) {
	d := newDuo(t, Config{EagerLimit: 2000})
	for _, n := range []int{-1, 0, 1, MaxSlots, MaxSlots + 1} {
		if err := d.cb.Renew(n); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d slots: %v", n, err)
		}
	}
	must(t, d.cb.Renew(4))
	if err := d.cb.Renew(4); !errors.Is(err, ErrState) {
		t.Errorf("two at once: %v", err)
	}
	d.ca.Abort(d.now, errHungUp)
	d.settle()
	if err := d.cb.Renew(4); !errors.Is(err, ErrInvalid) {
		t.Errorf("of a connection that is over: %v", err)
	}
	d.nothingLeft()
	_, err := New(Config{Rand: d.rand, Slots: MaxSlots, EagerLimit: 2000})
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("an endpoint with as many: %v", err)
	}
}
