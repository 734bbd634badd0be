package msg

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// pattern is the message number n of a sender.
func pattern(n, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(i*7 + n*13 + i>>8)
	}
	return b
}

// TestEveryProtocol sends messages of many lengths by each protocol, forced and chosen: each
// arrives whole, in order, and no memory is left.
func TestEveryProtocol(t *testing.T) {
	for p := Auto; p < protocolCount; p++ {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%v/%d", p, seed), func(t *testing.T) {
				w := newWorld(t, seed)
				if seed%2 == 1 {
					w.stingy = 20
				}
				a, b := w.node(Config{Protocol: p, Slots: 4}), w.node(Config{Protocol: p})
				ca, cb := w.join(a, b, allCapabilities)
				exchange(t, w, ca, cb)
			})
		}
	}
}

// exchange sends messages both ways and compares them.
func exchange(t *testing.T, w *world, ends ...*Conn) {
	t.Helper()
	const messages = 60
	lengths := []int{
		0, 1, 8, 100, 1023, 1024, 1025, 3000, 8192, 8193, 65536, 70000, 200000, 300000,
	}
	type sent struct {
		Send
		data []byte
	}
	var all [2][]*sent
	var receives [2][]*Receive
	for i, c := range ends {
		peer := ends[1-i]
		for n := range messages {
			s := &sent{data: pattern(n+i*1000, lengths[w.rand.IntN(len(lengths))])}
			s.Tag, s.Level = uint64(n), Level(w.rand.IntN(4))
			s.Pieces = [][]byte{s.data}
			all[i] = append(all[i], s)
			r := &Receive{Tag: uint64(n), Mask: 0, From: peer}
			if w.rand.IntN(2) == 0 {
				r.Mask, r.From = ^uint64(0), nil
			}
			size := len(s.data)
			if w.rand.IntN(4) == 0 {
				size = w.rand.IntN(size + 1)
			}
			r.Pieces = [][]byte{make([]byte, size)}
			receives[1-i] = append(receives[1-i], r)
		}
		_ = c
	}
	posted, asked := [2]int{}, [2]int{}
	for {
		i := w.rand.IntN(2)
		switch w.rand.IntN(6) {
		case 0:
			if posted[i] < messages {
				must(t, ends[i].Send(w.now, &all[i][posted[i]].Send))
				posted[i]++
			}
		case 1:
			if asked[i] < messages {
				must(t, ends[i].endpoint.Receive(w.now, receives[i][asked[i]]))
				asked[i]++
			}
		default:
			w.step()
		}
		if posted == [2]int{messages, messages} && asked == posted {
			break
		}
	}
	w.settle()
	for i, c := range ends {
		if c.err != nil {
			t.Fatal(c.err)
		}
		got := 0
		for s := c.endpoint.NextSent(); s != nil; s = c.endpoint.NextSent() {
			if s.Err != nil {
				t.Errorf("sent: %v", s.Err)
			}
			got++
		}
		if got != messages {
			t.Errorf("%d of %d messages are sent", got, messages)
		}
		got = 0
		for r := c.endpoint.NextReceived(); r != nil; r = c.endpoint.NextReceived() {
			want := all[1-i][r.SentTag]
			n := min(len(want.data), len(r.Pieces[0]))
			if r.Err != nil || r.Length != n || r.Whole != len(want.data) ||
				r.Truncated != (n < len(want.data)) || r.Source != c ||
				!bytes.Equal(r.Pieces[0][:n], want.data[:n]) {
				t.Errorf("message %d of %d bytes by %v: %v, %d of %d bytes, truncated %v, equal %v",
					r.SentTag, len(want.data), want.Choice, r.Err, r.Length, r.Whole, r.Truncated,
					bytes.Equal(r.Pieces[0][:n], want.data[:n]))
			}
			if receives[i][r.SentTag] != r {
				t.Errorf("message %d is in the receive of another", r.SentTag)
			}
			got++
		}
		if got != messages {
			t.Errorf("%d of %d messages are received", got, messages)
		}
	}
	for _, c := range ends {
		c.Close(w.now)
	}
	w.settle()
	for _, c := range ends {
		if !errors.Is(c.err, ErrClosed) {
			t.Errorf("closed: %v", c.err)
		}
	}
	w.nothingLeft()
}

// nothingLeft tests that connections that are over have left no memory, and no message under
// way.
func (w *world) nothingLeft() {
	w.t.Helper()
	for i, n := range w.nodes {
		e := n.endpoint
		if len(n.regions) != 0 || e.registered != 0 || e.pulling != 0 || e.ready.Len() != 0 ||
			len(e.throttled) != 0 || e.Usage().Waiting != 0 || e.timers.Len() != 0 ||
			len(n.requests) != 0 {
			w.t.Errorf("node %d: %d regions, %d bytes of slots, %d being read, %d timers", i,
				len(n.regions), e.registered, e.pulling, e.timers.Len())
		}
	}
}

// TestAbort ends connections at a random moment, from either end: each message and each
// receive comes back once, and nothing is left.
func TestAbort(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		config := Config{Protocol: Protocol(w.rand.IntN(int(protocolCount))), Slots: 4}
		a, b := w.node(config), w.node(config)
		ca, cb := w.join(a, b, allCapabilities)
		ends := [2]*Conn{ca, cb}
		out := map[any]bool{}
		post := func() {
			i := w.rand.IntN(2)
			if w.rand.IntN(2) == 0 {
				s := &Send{
					Pieces: [][]byte{make([]byte, w.rand.IntN(100_000))},
					Level:  Level(w.rand.IntN(4)),
				}
				if ends[i].Send(w.now, s) == nil {
					out[s] = true
				}
				return
			}
			r := &Receive{Pieces: [][]byte{make([]byte, 100_000)}, From: ends[i]}
			if ends[i].endpoint.Receive(w.now, r) == nil {
				out[r] = true
			}
		}
		for range w.rand.IntN(1000) {
			if w.rand.IntN(8) == 0 {
				post()
			}
			w.step()
		}
		ends[w.rand.IntN(2)].Abort(w.now, errNoMemory)
		for range 5 {
			post()
		}
		w.settle()
		for i, c := range ends {
			if c.Err() == nil {
				t.Fatalf("seed %d: end %d lives", seed, i)
			}
			e := c.endpoint
			for s := e.NextSent(); s != nil; s = e.NextSent() {
				if !out[s] {
					t.Fatalf("seed %d: a message came back twice", seed)
				}
				delete(out, s)
			}
			for r := e.NextReceived(); r != nil; r = e.NextReceived() {
				if !out[r] {
					t.Fatalf("seed %d: a receive came back twice", seed)
				}
				delete(out, r)
			}
		}
		if len(out) > 0 {
			for x := range out {
				switch x := x.(type) {
				case *Send:
					t.Errorf("seed %d: a message of %d bytes by %v is in state %d", seed, x.length,
						x.Choice, x.state)
				case *Receive:
					t.Errorf("seed %d: a receive, taken %v, queued %v", seed, x.taken,
						x.node.Queued())
				}
			}
		}
		w.nothingLeft()
		if t.Failed() {
			t.Fatalf("seed %d, %v", seed, config.Protocol)
		}
	}
}
