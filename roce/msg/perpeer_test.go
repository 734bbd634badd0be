package msg

import (
	"runtime"
	"testing"
)

// TestMemoryOfAPeer: what an idle peer costs, at one end: 34 KiB of slots for it and a copy of its
// own, and a little beside that, with 1000 peers as with one. Of those of which one in a hundred
// sends something large, that one costs more, until it was idle for a while.
func TestMemoryOfAPeer(t *testing.T) {
	const peers, large = 1000, 100
	w := newWorld(t, 1)
	hub := w.node(Config{})
	there := w.node(Config{})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var ends []*Conn
	for range peers {
		c, _ := w.join(there, hub, allCapabilities)
		ends = append(ends, c)
		w.settle()
	}
	w.said = nil
	slots := int64(32 * SlotLen(1024))
	u := hub.endpoint.Usage()
	if u.Slots != peers*slots || u.Memory != 2*peers*slots {
		t.Errorf("%d peers: %+v", peers, u)
	}
	// Both ends are here, and so is the memory of their slots, as the allocator rounds it up.
	rounded := int64(cap(append([]byte(nil), make([]byte, slots)...)))
	if beside := int64(heap()-before)/peers/2 - 2*rounded; beside > 9<<10 {
		t.Errorf("a peer costs %d bytes beside its slots", beside)
	} else {
		t.Logf("a peer costs %d bytes of slots and copies, and %d beside", 2*slots, beside)
	}
	runtime.KeepAlive(w)
	for i := 0; i < peers; i += large {
		r := &Receive{Pieces: [][]byte{make([]byte, 60_000)}}
		must(t, hub.endpoint.Receive(w.now, r))
		must(t, ends[i].Send(w.now, &Send{Pieces: [][]byte{make([]byte, 60_000)}}))
		w.settle()
	}
	each := int64(hub.endpoint.config.LargeSlots) * int64(ends[0].largeLen(65_536))
	grown := int64(peers/large) * each
	if got := hub.endpoint.Usage().Memory; got != 2*peers*slots+grown {
		t.Errorf("%d bytes when ten peers send large messages", got)
	}
	if fixed := peers * each; 10*grown > fixed {
		t.Errorf("%d bytes, %d if each peer had large slots", grown, fixed)
	}
	w.now += hub.endpoint.config.Idle * 2
	there.endpoint.HandleDeadline(w.now)
	w.settle()
	if got := hub.endpoint.Usage().Memory; got != 2*peers*slots {
		t.Errorf("%d bytes when they are idle again", got)
	}
}
