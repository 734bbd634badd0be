package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/clock"
)

// types counts the control messages of a type that were said.
func (w *world) types(want Type) (n int) {
	for _, m := range w.said {
		if m.Type == want {
			n++
		}
	}
	return n
}

// TestLongWritesEnlarge: the first write that no small slot has room for has large slots made,
// does not wait for them, and has them once they are there; they go when nobody uses them.
func TestLongWritesEnlarge(t *testing.T) {
	w := newWorld(t, 1)
	a, b := newParties(w, Config{})
	w.settle()
	a.write(1024)
	w.settle()
	if w.types(TypeProvisionReq) != 0 {
		t.Error("large slots for what fits a small one")
	}
	if n := a.write(40_000); n != 1024 {
		t.Errorf("%d bytes in the first slot", n)
	}
	w.settle()
	if n := a.write(40_000); n != 32<<10 || w.types(TypeProvisionReq) != 1 {
		t.Errorf("%d bytes in a large slot, %d requests", n, w.types(TypeProvisionReq))
	}
	w.settle()
	b.readAll()
	a.reserve(40_000)
	idle := func() {
		w.now += 11 * clock.Second
		a.endpoint.HandleDeadline(w.now)
		w.settle()
	}
	if idle(); w.types(TypeRelease) != 0 {
		t.Error("a slot is gone that somebody writes to")
	}
	a.commit(40_000)
	w.settle()
	b.readAll()
	if idle(); w.types(TypeReleaseAck) != 1 {
		t.Error("large slots are there that nobody uses")
	}
	if !bytes.Equal(a.written, b.read) {
		t.Error("what is read is not what was written")
	}
}

// TestLongWritesWaitForLargeSlots: once there are large slots, a long write takes no small ones,
// which would be a frame for each packet; it waits for the reader, and is told. Short writes do
// not wait, and when the large slots go the long ones do not either.
func TestLongWritesWaitForLargeSlots(t *testing.T) {
	w := newWorld(t, 1)
	a, b := newParties(w, Config{StreamSlots: 2})
	w.settle()
	a.write(40_000)
	w.settle() // the slots are made
	full := func() {
		for a.write(40_000) > 0 {
			w.settle()
		}
	}
	if full(); len(a.written) != 1024+2*32<<10 {
		t.Errorf("%d bytes without a reader", len(a.written))
	}
	if a.Writable() {
		t.Error("who waits for a large slot is told of small ones")
	}
	if n := a.write(500); n != 500 {
		t.Errorf("a short write has room for %d bytes", n)
	}
	a.reserve(40_000)
	w.settle()
	b.readAll()
	if w.settle(); !a.Writable() {
		t.Error("nobody is told that large slots are free")
	}
	full()
	for a.endpoint.NextMoved() != nil {
	}
	w.now += 11 * clock.Second
	a.endpoint.HandleDeadline(w.now)
	if a.endpoint.NextMoved() != a.Conn || !a.Writable() {
		t.Error("nobody is told that there are small slots alone")
	}
	w.settle()
	if n := a.write(40_000); n != 1024 {
		t.Errorf("%d bytes in a small slot", n)
	}
	w.settle()
	b.readAll()
	if !bytes.Equal(a.written, b.read) {
		t.Error("what is read is not what was written")
	}
}

// TestStreamsThatStaySmall: without a promise, by policy, with slots that are no larger, and by
// the peer's refusal, streams go through small slots.
func TestStreamsThatStaySmall(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		caps   Capabilities
		asks   int
	}{
		{"not agreed", Config{}, CapabilityGet, 0},
		{"policy", Config{Policy: EnlargeNever}, allCapabilities, 0},
		{"no larger", Config{StreamSlot: 1024}, allCapabilities, 0},
		{"refused", Config{Registered: 1}, allCapabilities, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1)
			na, nb := w.node(Config{Policy: c.config.Policy, StreamSlot: c.config.StreamSlot}),
				w.node(c.config)
			ha, hb := na.hello(c.caps), nb.hello(c.caps)
			ha.Service, hb.Service = ServiceStream, ServiceStream
			ca, cb := w.joinWith(na, nb, ha, hb)
			a, b := &party{Conn: ca, w: w}, &party{Conn: cb, w: w}
			w.settle()
			for range 5 {
				a.writeAll(20_000)
				w.settle()
				b.readAll()
				w.settle()
			}
			if n := w.types(TypeProvisionReq); n != c.asks || !bytes.Equal(a.written, b.read) {
				t.Errorf("%d requests, %d of %d bytes", n, len(b.read), len(a.written))
			}
		})
	}
}

// TestRenewOfStream: other small slots are used only when the one that is written to is back.
func TestRenewOfStream(t *testing.T) {
	w := newWorld(t, 1)
	a, b := newParties(w, Config{})
	w.settle()
	a.reserve(1024)
	must(t, b.Renew(2))
	w.settle()
	if w.types(TypeAdvertAck) != 2 {
		t.Error("slots were left that somebody writes to")
	}
	a.commit(1024)
	w.settle()
	if w.types(TypeAdvertAck) != 3 {
		t.Error("the new slots are not used")
	}
	for range 40 { // more than there are old ones
		a.writeAll(500)
		w.settle()
		b.readAll()
		w.settle()
	}
	if !bytes.Equal(a.written, b.read) {
		t.Errorf("%d of %d bytes", len(b.read), len(a.written))
	}
	a.reserve(1024)
	must(t, b.Renew(4))
	w.settle()
	a.Abort(w.now, errHungUp) // with one set in use and one waiting
	w.settle()
	a.commit(0)
	for _, p := range []*party{a, b} {
		p.HangUp(w.now, clock.Second)
	}
	w.settle()
	w.nothingLeft()
}

// TestStreamIsNoEndpoint: each of both refuses the calls of the other.
func TestStreamIsNoEndpoint(t *testing.T) {
	w := newWorld(t, 1)
	a, _ := newParties(w, Config{})
	w.settle()
	if err := a.Send(w.now, &Send{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("send: %v", err)
	}
	if err := a.endpoint.Receive(w.now, &Receive{From: a.Conn}); err == nil {
		t.Error("it receives messages")
	}
	if err := a.Commit(w.now, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("commit: %v", err)
	}
	a.reserve(1)
	if _, err := a.Reserve(w.now, 1); !errors.Is(err, ErrQueued) {
		t.Errorf("reserve twice: %v", err)
	}
	c, _ := w.join(w.nodes[0], w.nodes[1], allCapabilities)
	if _, err := c.Reserve(w.now, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("reserve: %v", err)
	}
	if _, err := c.Peek(); !errors.Is(err, ErrInvalid) {
		t.Errorf("peek: %v", err)
	}
}

// TestStreamRefuses: what a peer may not say on a stream, or after its last word, ends it.
func TestStreamRefuses(t *testing.T) {
	record := func(h RecordHeader) func(l *liar) {
		return func(l *liar) { l.frame(l.c.in[0], h) }
	}
	say := func(m Control) func(l *liar) {
		return func(l *liar) { l.control(m) }
	}
	fin := Control{Type: TypeFIN}
	for _, c := range []struct {
		name  string
		first []func(l *liar)
		want  error
	}{
		{"announcement", []func(l *liar){say(Control{Type: TypeRTS})}, ErrState},
		{"fragment", []func(l *liar){record(RecordHeader{Type: RecordFragment, Len: 1})}, ErrType},
		{"active", []func(l *liar){record(RecordHeader{Type: RecordActive, Len: 1})}, ErrType},
		{"tag", []func(l *liar){record(RecordHeader{Type: RecordEager, Len: 1, Tag: 1})}, ErrType},
		{"flag", []func(l *liar){
			record(RecordHeader{Type: RecordEager, Len: 1, Flags: RecordTell}),
		}, ErrType},
		{"empty", []func(l *liar){record(RecordHeader{Type: RecordEager})}, ErrType},
		{"bytes after the last", []func(l *liar){
			say(fin), record(RecordHeader{Type: RecordEager, Len: 1}),
		}, ErrState},
		{"last word twice", []func(l *liar){say(fin), say(fin)}, ErrState},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1)
			a, _ := newParties(w, Config{})
			w.settle()
			w.pipes[1].lies = true
			l := &liar{world: w, c: a.Conn}
			for _, f := range c.first {
				must(t, a.Err())
				f(l)
			}
			if !errors.Is(a.Err(), c.want) {
				t.Errorf("%v", a.Err())
			}
			a.HangUp(w.now, clock.Second)
			w.settle()
			w.nothingLeft()
		})
	}
}

// FuzzStreamLiar plays a peer of a stream that says and writes anything.
func FuzzStreamLiar(f *testing.F) {
	f.Add([]byte("\x03\x00\x01"))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWorld(t, 1)
		a, _ := newParties(w, Config{Slots: 4})
		w.settle()
		w.pipes[1].lies = true
		l := &liar{world: w, c: a.Conn, bytes: b}
		for len(l.bytes) > 0 {
			switch l.next() % 6 {
			case 0, 1:
				l.say()
			case 2:
				l.write()
			case 3:
				l.frame(l.c.in[0], RecordHeader{Type: RecordEager, Len: uint32(l.next())})
			case 4:
				a.act(1 << 20)
			default:
				w.step()
			}
			if a.arrivals.n > 64 || len(a.Conn.in) > 8 ||
				a.endpoint.registered > 8<<20 {
				t.Fatalf("%d arrivals, %d rings of %d bytes", a.arrivals.n, len(a.Conn.in),
					a.endpoint.registered)
			}
			if len(a.Conn.in) == 0 {
				break
			}
		}
		a.Abort(w.now, errHungUp)
		if a.out != nil {
			a.commit(0)
		}
		if a.in != nil {
			a.consume(0)
		}
		a.HangUp(w.now, clock.Second)
		w.settle()
		w.nothingLeft()
	})
}
