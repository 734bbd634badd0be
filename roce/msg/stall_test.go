package msg

import (
	"errors"
	"testing"

	"xroce/roce/clock"
)

// TestGrantsThatAreNeverUsed: a peer announces messages and does not send them, though it was asked
// to, or sends a part. After a while its connection ends by name, which it is told, and so the
// receives do. Until then not one of them does.
func TestGrantsThatAreNeverUsed(t *testing.T) {
	const size, stall = 5 << 20, 10 * clock.Second
	for _, c := range []struct {
		name  string
		flags Flags
		parts int        // fragments that it does send
		after clock.Time // a second for each MiB that it writes by itself
	}{
		{"put", FlagPut, 0, 5 * clock.Second},
		{"fragments", 0, 0, 0},
		{"some fragments", 0, 7, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLiar(t, Config{Stall: stall})
			e := l.c.endpoint
			r := &Receive{Pieces: [][]byte{make([]byte, size)}}
			must(t, e.Receive(l.now, r))
			l.control(Control{Type: TypeRTS, ID: 1, Len: size, Flags: c.flags})
			l.settle()
			begin := l.now
			for n := range c.parts {
				l.now += stall / 2 // slow, but not too slow
				e.HandleDeadline(l.now)
				l.frame(l.c.in[0], RecordHeader{
					Type: RecordFragment, Number: 1, Len: 100, Tag: uint64(100 * n),
				})
				begin = l.now
			}
			for l.c.Err() == nil {
				at, ok := e.NextDeadline()
				if !ok || at > begin+10*stall {
					t.Fatal("nobody looks after it")
				}
				l.now = at
				e.HandleDeadline(l.now)
				l.settle()
			}
			if took := l.now - begin - c.after; took < stall || took > stall+2*stall/stallLooks+
				clock.Second {
				t.Errorf("it ends after %v ns", took)
			}
			if !errors.Is(l.c.Err(), ErrStalled) || e.NextReceived() != r ||
				!errors.Is(r.Err, ErrStalled) || e.count[StallEnds] != 1 {
				t.Errorf("the connection ends with %v, the receive with %v", l.c.Err(), r.Err)
			}
			if m := l.said[len(l.said)-1]; m.Type != TypeBye || m.Status != StatusTimeout {
				t.Errorf("the last words are %v", m)
			}
			l.pipes[1].conn.Abort(l.now, errHungUp)
			l.settle()
			l.nothingLeft()
		})
	}
}

// TestSlowReceiverIsNotStalled: a sender whose messages nobody receives, and whose fragments wait
// behind some that are held back here, owes nothing.
func TestSlowReceiverIsNotStalled(t *testing.T) {
	l := newLiar(t, Config{Stall: clock.Second, Unexpected: 1})
	e := l.c.endpoint
	r := &Receive{Pieces: [][]byte{make([]byte, 5000)}, Tag: 1, Mask: 1}
	must(t, e.Receive(l.now, r))
	l.control(Control{Type: TypeRTS, ID: 2, Len: 5000, Flags: FlagPut}) // nobody wants it
	l.control(Control{Type: TypeRTS, ID: 1, Len: 5000, Tag: 1})
	for range 3 {
		l.frame(l.c.in[0], RecordHeader{Type: RecordEager, Len: 8})
	}
	for range 20 {
		l.now += clock.Second
		e.HandleDeadline(l.now)
		l.settle()
	}
	if l.c.Err() != nil {
		t.Error(l.c.Err())
	}
}
