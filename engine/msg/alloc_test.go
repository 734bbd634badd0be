//go:build !race

package msg_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"xroce/engine"
	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
)

// allocationCases are messages of each protocol.
var allocationCases = []struct {
	protocol rmsg.Protocol
	size     int
}{
	{rmsg.Auto, 64},
	{rmsg.Eager, 1000},
	{rmsg.Provisioned, 100 << 10},
	{rmsg.Get, 1 << 20},
	{rmsg.Put, 1 << 20},
	{rmsg.Fragments, 20 << 10},
}

// leastAllocations is how often something that is done again and again allocates. The run time does
// so now and then, and sleepers whose contexts end, so of many short measurements the least counts.
func leastAllocations(run func()) float64 {
	least := testing.AllocsPerRun(5, run)
	for i := 0; i < 100 && least > 0; i++ {
		least = min(least, testing.AllocsPerRun(5, run))
	}
	return least
}

// wantNoAllocations sends messages of each protocol, often enough first that all that grows has
// grown.
func wantNoAllocations(t *testing.T, newBurst func(n, size int) *burst) {
	for _, c := range allocationCases {
		t.Run(fmt.Sprint(c.protocol, " ", c.size), func(t *testing.T) {
			ctx := context.Background()
			u := newBurst(4, c.size)
			for _, s := range u.sends {
				s.Protocol = c.protocol
			}
			run := func() { must(t, u.run(ctx)) }
			for range 50 {
				run()
			}
			if least := leastAllocations(run); least > 0 {
				t.Errorf("%v allocations for %d messages", least, len(u.sends))
			}
		})
	}
}

// TestMessageAllocations: a message costs no memory, whatever its protocol.
func TestMessageAllocations(t *testing.T) {
	l := newLoop(t)
	e, ca, cb := l.messages(t)
	wantNoAllocations(t, func(n, size int) *burst { return newBurst(e, ca, cb, n, size) })
}

// TestMessageAllocationsVeth: nor does it between two devices that sleep and are woken.
func TestMessageAllocationsVeth(t *testing.T) {
	hosts := newVeth(t)
	ca, cb := connect(t, hosts)
	wantNoAllocations(t, func(n, size int) *burst {
		return newBurst(hosts[1].Endpoint, ca, cb, n, size)
	})
}

// TestPiecesDoNotAllocate: nor does a message in pieces, which has one key at each end.
func TestPiecesDoNotAllocate(t *testing.T) {
	l := newLoop(t)
	e, ca, cb := l.messages(t)
	wantNoAllocations(t, func(n, size int) *burst {
		u := newBurst(e, ca, cb, n, size)
		for i := range n {
			u.sends[i].Buffers = cutUp(u.sends[i].Buffers[0], size/3, 0, 7)
			u.receives[i].Buffers = cutUp(u.receives[i].Buffers[0], 5, size/2)
		}
		return u
	})
}

// TestRegionsDoNotAllocate: nor does one that is sent from a layout and received in another.
func TestRegionsDoNotAllocate(t *testing.T) {
	l := newLoop(t)
	e, ca, cb := l.messages(t)
	rng := rand.New(rand.NewPCG(9, 10))
	wantNoAllocations(t, func(n, size int) *burst {
		u := newBurst(e, ca, cb, n, size)
		for i := range n {
			u.sends[i].Buffers, u.receives[i].Buffers = nil, nil
			devs := []*engine.Device{l.dev}
			u.sends[i].Memory = newLaid(t, rng, plain, e, devs, size).span
			u.receives[i].Memory = newLaid(t, rng, plain, e, devs, size).span
		}
		return u
	})
}

// TestRailsDoNotAllocate: nor does one that has a key for each of two rails.
func TestRailsDoNotAllocate(t *testing.T) {
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	wantNoAllocations(t, func(n, size int) *burst {
		return newBurst(w.endpoints[1], w.ca, w.cb, n, size)
	})
}

// TestUnexpectedAllocations: as many short messages as a peer may leave here cost no memory when
// they have come before.
func TestUnexpectedAllocations(t *testing.T) {
	l := newLoop(t)
	e, ca, cb := l.messages(t)
	ctx := context.Background()
	const n = 1700 // of 64 bytes, and what is kept beside them: less than 1 MiB
	u := newBurst(e, ca, cb, n, 64)
	run := func() {
		for _, r := range u.receives {
			r.From, r.Tag, r.Mask = u.to, 0, ^uint64(0)
		}
		for part := range slices.Chunk(u.sends, 100) {
			_, err := ca.PostSends(part)
			must(t, err)
			must(t, ca.Flush(ctx))
		}
		_, err := e.PostReceives(u.receives)
		must(t, err)
		for i := range u.sends {
			must(t, errors.Join(u.receives[i].Wait(ctx), u.sends[i].Wait(ctx)))
		}
	}
	for range 3 {
		run()
	}
	unexpected := e.Snapshot()[rmsg.Unexpected]
	if least := leastAllocations(run); least > 100 { // a Flush takes some
		t.Errorf("%v allocations for %d messages", least, n)
	}
	if e.Snapshot()[rmsg.Unexpected]-unexpected < n {
		t.Error("the messages were not unexpected")
	}
}
