package msg

import (
	"errors"
	"testing"
)

// TestFlush: a mark is complete when all messages before it are at the peer, whatever their
// protocols, and not before; messages behind it do not hold it up.
func TestFlush(t *testing.T) {
	for p := Auto; p < protocolCount; p++ {
		for seed := range uint64(10) {
			w := newWorld(t, seed)
			a, b := w.node(Config{Protocol: p, Slots: 4}), w.node(Config{Protocol: p, Slots: 4})
			ca, cb := w.join(a, b, allCapabilities)
			arrived := map[uint64]bool{}
			take := func() {
				for r := b.endpoint.NextReceived(); r != nil; r = b.endpoint.NextReceived() {
					must(t, r.Err)
					arrived[r.SentTag] = true
				}
			}
			var marks []*Send
			for n := range 40 {
				if n%10 == 9 {
					marks = append(marks, &Send{User: n})
					must(t, ca.Flush(w.now, marks[len(marks)-1]))
					continue
				}
				must(t, b.endpoint.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 50_000)}}))
				data := make([]byte, w.rand.IntN(2)*w.rand.IntN(50_000))
				must(t, ca.Send(w.now, &Send{Pieces: [][]byte{data}, Tag: uint64(n)}))
			}
			passed := 0
			for w.step() {
				take()
				for s := a.endpoint.NextSent(); s != nil; s = a.endpoint.NextSent() {
					must(t, s.Err)
					if n, ok := s.User.(int); ok {
						passed++
						for before := range n {
							// What is in a slot, and was not looked at, is at the peer, and what is
							// in its place under a key that is being taken out of use.
							if before%10 != 9 && !arrived[uint64(before)] && cb.arrivals.n == 0 &&
								len(w.pipes[0].came) == 0 && len(b.requests) == 0 {
								t.Fatalf("%v, seed %d: message %d is not there", p, seed, before)
							}
						}
					}
				}
			}
			if passed != len(marks) {
				t.Fatalf("%v, seed %d: %d marks of %d", p, seed, passed, len(marks))
			}
			// Nothing before it, and nobody receives what is behind it.
			s := &Send{}
			must(t, ca.Flush(w.now, s))
			must(t, ca.Send(w.now, &Send{Pieces: [][]byte{make([]byte, 5000)}}))
			if a.endpoint.NextSent() != s {
				t.Fatal("not at once")
			}
			// One behind what nobody receives ends with the connection.
			must(t, ca.Flush(w.now, s))
			if err := ca.Flush(w.now, s); !errors.Is(err, ErrQueued) {
				t.Error(err)
			}
			ca.Abort(w.now, errHungUp)
			w.settle()
			last := a.endpoint.NextSent()
			for next := last; next != nil; next = a.endpoint.NextSent() {
				last = next
			}
			if last == nil || !errors.Is(last.Err, errHungUp) && last.Err != nil {
				t.Errorf("%v: %v", p, last)
			}
			w.nothingLeft()
		}
	}
}

// TestFence: a message with a fence leaves when all before it are at the peer: in their place, if
// they were announced, and with their frames acknowledged. Messages of other connections pass.
func TestFence(t *testing.T) {
	for _, size := range []int{8, 100_000} {
		w := newWorld(t, 1)
		a, b, other := w.node(Config{}), w.node(Config{}), w.node(Config{})
		ca, _ := w.join(a, b, allCapabilities)
		co, _ := w.join(a, other, allCapabilities)
		w.settle()
		left := func() uint64 {
			n := a.endpoint.Snapshot()
			return n[SentEager] + n[SentGet]
		}
		long := &Send{Pieces: [][]byte{pattern(1, 50_000)}, Protocol: Get, Tag: 1}
		fenced := &Send{Pieces: [][]byte{pattern(2, size)}, Fence: true, Tag: 2, Protocol: Get}
		if size < 1000 {
			fenced.Protocol = Eager
		}
		behind := &Send{Pieces: [][]byte{{3}}, Tag: 3}
		beside := &Send{Pieces: [][]byte{{4}}}
		for c, list := range map[*Conn][]*Send{ca: {long, fenced, behind}, co: {beside}} {
			for _, s := range list {
				must(t, c.Send(w.now, s))
			}
		}
		w.settle()
		if left() != 2 || beside.Sent != 1 {
			t.Errorf("%d messages have left before the first was received", left())
		}
		receive := func(tag uint64, n int) *Receive {
			r := &Receive{Pieces: [][]byte{make([]byte, n)}, Tag: tag, Mask: ^uint64(0)}
			must(t, b.endpoint.Receive(w.now, r))
			return r
		}
		receive(1, 50_000)
		w.settle()
		if left() < 3 {
			t.Errorf("%d messages have left behind it", left())
		}
		receive(2, size)
		receive(3, 1)
		w.settle()
		if fenced.state != sendIdle || fenced.Err != nil || behind.Sent != 1 {
			t.Errorf("a message with a fence is in state %d: %v", fenced.state, fenced.Err)
		}

		w.unacked = true
		first, second := &Send{Pieces: [][]byte{{5}}}, &Send{Pieces: [][]byte{{6}}, Fence: true}
		before := left()
		must(t, ca.Send(w.now, first))
		must(t, ca.Send(w.now, second))
		w.settle()
		if left() != before+1 {
			t.Errorf("%d messages left before an acknowledgement", left()-before)
		}
		w.unacked = false
		w.settle()
		if left() != before+2 || second.Err != nil {
			t.Errorf("%d messages left behind it: %v", left()-before, second.Err)
		}
	}
}
