package msg

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"xroce/roce/clock"
)

// A party is an end of a stream: what it has written, and read.
type party struct {
	*Conn
	w       *world
	written []byte
	read    []byte
	out, in []byte // that are lent
	said    bool   // the last word
	ended   error  // what Peek said in the end
}

func newParties(w *world, config Config) (a, b *party) {
	ca, cb := w.joinStream(w.node(config), w.node(config))
	return &party{Conn: ca, w: w}, &party{Conn: cb, w: w}
}

// reserve lends a slot for n bytes, if it can.
func (p *party) reserve(n int) {
	p.w.t.Helper()
	var err error
	lend := p.Reserve
	if n%2 == 0 {
		lend = p.ReserveSlot
	}
	p.out, err = lend(p.w.now, n)
	if err != nil && p.Err() == nil {
		p.w.t.Fatal(err)
	}
}

// commit fills what is lent with the next n bytes of the pattern and sends them.
func (p *party) commit(n int) {
	n = min(n, len(p.out))
	begin := len(p.written)
	for i := range n {
		p.written = append(p.written, byte((begin+i)*7+(begin+i)>>8))
	}
	copy(p.out, p.written[begin:])
	p.out = nil
	if p.Commit(p.w.now, n) != nil {
		p.written = p.written[:begin]
	}
}

// write is reserve and commit, and returns how many bytes there was room for.
func (p *party) write(n int) int {
	p.w.t.Helper()
	if p.reserve(n); p.out == nil {
		return 0
	}
	n = min(n, len(p.out))
	p.commit(n)
	return n
}

// writeAll writes, while the world goes on.
func (p *party) writeAll(n int) {
	p.w.t.Helper()
	for n > 0 {
		n -= p.write(n)
		if !p.w.step() && n > 0 && !p.Writable() {
			p.w.t.Fatalf("%d bytes have no room", n)
		}
	}
}

func (p *party) peek() {
	b, err := p.Peek()
	if p.in = b; err != nil {
		p.ended = err
	}
}

func (p *party) consume(n int) {
	n = min(n, len(p.in))
	p.read = append(p.read, p.in[:n]...)
	p.in = nil
	p.Consume(p.w.now, n)
}

// readAll reads what there is.
func (p *party) readAll() {
	for p.peek(); p.in != nil; p.peek() {
		p.consume(len(p.in))
	}
}

// act does something that an end may do, drawn.
func (p *party) act(most int) {
	r := p.w.rand
	switch r.IntN(4) {
	case 0:
		if p.out == nil && !p.said && len(p.written) < most {
			p.reserve(1 + r.IntN(1<<r.IntN(16)))
		}
	case 1:
		if p.out != nil {
			p.commit(r.IntN(len(p.out) + 1))
		}
	case 2:
		if p.in == nil {
			p.peek()
		}
	default:
		if p.in != nil {
			p.consume(r.IntN(len(p.in) + 1))
		}
	}
}

// TestStream has both ends write and read pieces of any length, hold what they were lent for any
// time, and say their last word: each reads what the other has written, then io.EOF.
func TestStream(t *testing.T) {
	const most = 200_000
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		w.stingy = int(seed%3) * 50
		a, b := newParties(w, Config{Slots: 4, StreamSlots: 2, StreamSlot: 10_000})
		for n := 0; a.ended == nil || b.ended == nil; n++ {
			for i, p := range []*party{a, b} {
				p.act(most)
				if !p.said && len(p.written) >= most*(1+i)/2 {
					p.said = true
					p.Close(w.now)
				}
				p.w.step()
			}
			if n > 200_000 {
				t.Fatalf("seed %d: %d of %d and %d of %d bytes", seed, len(b.read), len(a.written),
					len(a.read), len(b.written))
			}
		}
		for _, p := range []*party{a, b} {
			if p.out != nil {
				p.commit(0)
			}
			if p.ended != io.EOF {
				t.Errorf("seed %d: %v", seed, p.ended)
			}
		}
		if !bytes.Equal(a.written, b.read) || !bytes.Equal(b.written, a.read) {
			t.Errorf("seed %d: what is read is not what was written", seed)
		}
		w.settle()
		for _, p := range []*party{a, b} {
			if !errors.Is(p.Err(), ErrClosed) {
				t.Errorf("seed %d: closed: %v", seed, p.Err())
			}
			p.HangUp(w.now, clock.Second)
		}
		w.settle()
		w.nothingLeft()
		if t.Failed() {
			return
		}
	}
}

// TestWriterIsToldByCompletions: slots that the peer has left before what went in them is
// acknowledged are free with the completion, and who waits for one is told then.
func TestWriterIsToldByCompletions(t *testing.T) {
	w := newWorld(t, 1)
	a, b := newParties(w, Config{Slots: 4})
	w.settle()
	w.unacked = true
	for a.write(1024) > 0 {
		w.settle()
	}
	b.readAll()
	w.settle()
	for a.endpoint.NextMoved() != nil {
	}
	if a.Writable() {
		t.Fatal("there is room before anything is complete")
	}
	w.unacked = false
	w.settle()
	if !a.Writable() || a.endpoint.NextMoved() != a.Conn {
		t.Error("nobody is told of the room")
	}
}

// TestStreamAbort ends streams at a random moment, with slots lent to anybody: what arrived
// can be read, and once all is given back nothing is left.
func TestStreamAbort(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		a, b := newParties(w, Config{Slots: 4})
		for range w.rand.IntN(400) {
			[]*party{a, b}[w.rand.IntN(2)].act(1 << 20)
			w.step()
		}
		switch w.rand.IntN(4) {
		case 0:
			a.Abort(w.now, errHungUp)
		case 1:
			a.Conn.HangUp(w.now, clock.Second)
		case 2:
			a.Close(w.now)
			w.step()
			a.Abort(w.now, errHungUp)
		default:
			a.Conn.HangUp(w.now, clock.Second)
			w.now += 2 * clock.Second
			a.endpoint.HandleDeadline(w.now)
		}
		w.settle()
		for _, p := range []*party{a, b} {
			if p.out != nil {
				p.commit(1)
			}
			if p.in != nil {
				p.consume(1)
			}
		}
		w.settle()
		b.readAll()
		if b.ended == nil || !bytes.HasPrefix(a.written, b.read) {
			t.Fatalf("seed %d: %v, %d of %d bytes", seed, b.ended, len(b.read), len(a.written))
		}
		a.HangUp(w.now, clock.Second)
		b.HangUp(w.now, clock.Second)
		w.settle()
		w.nothingLeft()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestStreamHangUp: who hangs up right after writing loses nothing, though the connection is
// over before the peer reads; and the peer cannot write any more.
func TestStreamHangUp(t *testing.T) {
	w := newWorld(t, 1)
	a, b := newParties(w, Config{})
	w.settle()
	a.writeAll(10_000)
	a.HangUp(w.now, clock.Second)
	w.settle()
	if !errors.Is(a.Err(), ErrClosed) || b.Err() == nil {
		t.Fatalf("%v, %v", a.Err(), b.Err())
	}
	if _, err := a.Peek(); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := b.Reserve(w.now, 1); !errors.Is(err, b.Err()) {
		t.Errorf("write: %v", err)
	}
	b.readAll()
	if !bytes.Equal(b.read, a.written) || b.ended != io.EOF {
		t.Errorf("%d of %d bytes, %v", len(b.read), len(a.written), b.ended)
	}
	b.HangUp(w.now, clock.Second)
	w.settle()
	w.nothingLeft()
}

// TestStreamHalfClose: an end that has said its last word reads on.
func TestStreamHalfClose(t *testing.T) {
	w := newWorld(t, 1)
	a, b := newParties(w, Config{})
	w.settle()
	a.writeAll(100)
	a.Close(w.now)
	w.settle()
	if _, err := a.Reserve(w.now, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if b.readAll(); b.ended != io.EOF {
		t.Fatalf("%v", b.ended)
	}
	b.writeAll(100)
	b.Close(w.now)
	w.settle()
	if a.readAll(); a.ended != io.EOF || !bytes.Equal(a.read, b.written) {
		t.Errorf("%d bytes, %v", len(a.read), a.ended)
	}
	w.settle()
	if !errors.Is(a.Err(), ErrClosed) || !errors.Is(b.Err(), ErrClosed) {
		t.Errorf("%v, %v", a.Err(), b.Err())
	}
	w.nothingLeft()
}

// TestStreamLingers: a peer that is gone ends a stream that was closed after a while.
func TestStreamLingers(t *testing.T) {
	w := newWorld(t, 1)
	a, b := newParties(w, Config{})
	w.settle()
	a.write(100)
	var pipes []*pipe
	pipes, w.pipes = w.pipes, nil // nothing moves any more
	a.HangUp(w.now, clock.Second)
	w.settle()
	a.endpoint.HandleDeadline(w.now)
	if a.Err() != nil {
		t.Fatal(a.Err())
	}
	at, ok := a.endpoint.NextDeadline()
	if !ok || at > w.now+clock.Second {
		t.Fatalf("%v, %v", at, ok)
	}
	a.endpoint.HandleDeadline(at)
	if a.Err() == nil {
		t.Fatal("it waits")
	}
	w.pipes = pipes
	w.settle()
	b.HangUp(w.now, clock.Second)
	w.settle()
	w.nothingLeft()
}

// TestStreamIsBounded: a reader that does not read stops the writer, after as many slots as
// there are, and each byte arrives once it reads.
func TestStreamIsBounded(t *testing.T) {
	w := newWorld(t, 1)
	config := Config{Slots: 4, StreamSlots: 2}
	a, b := newParties(w, config)
	w.settle()
	for {
		n := a.write(100_000)
		if !w.step() && n == 0 {
			break
		}
	}
	if n, most := len(a.written), 4*1024+2*32<<10; n > most || n < most/2 {
		t.Errorf("%d bytes without a reader", n)
	}
	if a.Writable() {
		t.Error("there is room")
	}
	b.readAll()
	w.settle()
	if !a.Writable() || !bytes.Equal(b.read, a.written) {
		t.Errorf("writable %v, %d of %d bytes", a.Writable(), len(b.read), len(a.written))
	}
}
