package msg

import (
	"errors"
	"testing"

	"xroce/roce/verbs"
)

// TestBrokenProtocolIsNamed: each thing that a peer may not do ends its connection with an error
// that names it, which the peer is told first.
func TestBrokenProtocolIsNamed(t *testing.T) {
	rts := Control{Type: TypeRTS, ID: 1, Len: 5000, Flags: FlagPut}
	eager := RecordHeader{Type: RecordEager, Len: 8}
	for _, test := range []struct {
		name string
		want error
		do   func(l *liar)
	}{
		{"a second FIN", ErrState, func(l *liar) {
			l.control(Control{Type: TypeFIN})
			l.control(Control{Type: TypeFIN})
		}},
		{"an RTS behind FIN", ErrState, func(l *liar) {
			l.control(Control{Type: TypeFIN})
			l.control(rts)
		}},
		{"a frame behind FIN", ErrState, func(l *liar) {
			l.control(Control{Type: TypeFIN})
			l.frame(l.c.in[0], eager)
		}},
		{"an RTS with the ID of another", ErrState, func(l *liar) {
			l.control(rts)
			l.control(rts)
		}},
		{"an RTS beyond what is agreed", ErrState, func(l *liar) {
			l.control(Control{Type: TypeRTS, ID: 4, Len: 5000})
		}},
		{"an RTS of more than a message may have", ErrRange, func(l *liar) {
			l.control(Control{Type: TypeRTS, ID: 1, Len: 1 << 62, Flags: FlagPut})
		}},
		{"a grant for nothing", ErrState, func(l *liar) {
			l.control(Control{Type: TypeCTS, ID: 1, Len: 1})
		}},
		{"MATCHED for nothing", ErrState, func(l *liar) {
			l.control(Control{Type: TypeMatched, ID: 1})
		}},
		{"credit for nothing", ErrCredit, func(l *liar) {
			l.control(Control{Type: TypeCredit, Released: 1})
		}},
		{"large slots that nobody wanted", ErrEpoch, func(l *liar) {
			l.control(Control{
				Type: TypeProvisionAck, Class: 1, ID: 1, Number: 1, Len: SlotLen(8192),
			})
		}},
		{"RELEASE of nothing", ErrEpoch, func(l *liar) {
			l.control(Control{Type: TypeRelease, Class: 1, ID: 1})
		}},
		{"an ADVERT of another epoch", ErrEpoch, func(l *liar) {
			l.control(Control{Type: TypeAdvert, ID: 7, Number: 4, Len: 1024})
		}},
		{"an ADVERT of more than our copy may have", ErrRange, func(l *liar) {
			l.control(Control{Type: TypeAdvert, ID: 1, Number: 4096, Len: 1 << 20})
		}},
		{"a frame in slots that it has not said it uses", ErrSlot, func(l *liar) {
			must(l.t, l.c.Renew(8))
			l.settle()
			l.frame(l.c.in[1], eager)
		}},
		{"a frame in slots that it has left", ErrNoRing, func(l *liar) {
			old := *l.c.in[0]
			must(l.t, l.c.Renew(8))
			l.settle()
			l.control(Control{Type: TypeAdvertAck, ID: 1})
			l.frame(&old, eager)
		}},
		{"a frame in a slot that is not free", ErrSlot, func(l *liar) {
			for range 10 { // one is kept, eight stay in the slots
				l.frame(l.c.in[0], eager)
			}
		}},
		{"a grant of more than the message has", ErrRange, func(l *liar) {
			l.control(Control{Type: TypeRTR, ID: l.announces(Put), Len: 5001})
		}},
		{"a grant of what comes later in the message", ErrRange, func(l *liar) {
			l.control(Control{Type: TypeRTR, ID: l.announces(Put), Tag: 1, Len: 4999})
		}},
		{"a grant for a message that was granted", ErrState, func(l *liar) {
			grant := Control{Type: TypeRTR, ID: l.announces(Put), Len: 5000}
			l.control(grant)
			l.control(grant)
		}},
		{"fragments wanted of more than the message has", ErrRange, func(l *liar) {
			l.control(Control{Type: TypeCTS, ID: l.announces(Fragments), Len: 5001})
		}},
		{"fragments wanted of what was cleared", ErrRange, func(l *liar) {
			id := l.announces(Fragments)
			l.control(Control{Type: TypeCTS, ID: id, Len: 3000})
			l.control(Control{Type: TypeCTS, ID: id, Len: 3000})
		}},
		{"more taken than the message has", ErrState, func(l *liar) {
			l.control(Control{Type: TypeATS, ID: l.announces(Get), Len: 5001})
		}},
		{"less put than was asked for", ErrRange, func(l *liar) {
			l.receives(rts)
			l.control(Control{Type: TypeATP, ID: rts.ID, Len: 4999})
		}},
		{"put of what comes later in the message", ErrRange, func(l *liar) {
			l.receives(rts)
			l.control(Control{Type: TypeATP, ID: rts.ID, Tag: 1, Len: 5000})
		}},
		{"put before it was asked for", ErrState, func(l *liar) {
			l.control(rts)
			l.control(Control{Type: TypeATP, ID: rts.ID, Len: 5000})
		}},
		{"a fragment beyond what was cleared", ErrRange, func(l *liar) {
			l.receives(Control{Type: TypeRTS, ID: 1, Len: 1000})
			l.frame(l.c.in[0], RecordHeader{Type: RecordFragment, Number: 1, Len: 1001})
		}},
		{"a fragment of what comes later in the message", ErrRange, func(l *liar) {
			l.receives(Control{Type: TypeRTS, ID: 1, Len: 20_000})
			l.frame(l.c.in[0], RecordHeader{Type: RecordFragment, Number: 1, Len: 8, Tag: 8})
		}},
		{"a work request of another kind", ErrType, func(l *liar) {
			wc := verbs.Completion{Opcode: verbs.WCRead}
			l.c.endpoint.HandleArrival(l.now, l.c.First(), &wc, nil)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLiar(t, Config{Rendezvous: 4, Slots: 8, Unexpected: 1})
			test.do(l)
			l.wantBroken(test.want)
		})
	}
}

// announces has our end announce a message of 5000 bytes to the liar, and returns its ID.
func (l *liar) announces(p Protocol) uint32 {
	l.t.Helper()
	s := &Send{Pieces: [][]byte{make([]byte, 5000)}, Protocol: p}
	must(l.t, l.c.Send(l.now, s))
	l.settle()
	if n := len(l.said); n == 0 || l.said[n-1].Type != TypeRTS || l.said[n-1].ID != s.id {
		l.t.Fatalf("it is not announced: %v", l.said)
	}
	return s.id
}

// receives has our end receive what the liar announces, and ask for it.
func (l *liar) receives(rts Control) {
	l.t.Helper()
	must(l.t, l.c.endpoint.Receive(l.now, &Receive{Pieces: [][]byte{make([]byte, rts.Len)}}))
	l.control(rts)
	l.settle()
	if n := len(l.said); n == 0 || l.said[n-1].Type != TypeRTR && l.said[n-1].Type != TypeCTS {
		l.t.Fatalf("it is not asked for: %v", l.said)
	}
}

// TestPeerIsToldWhy: the end that broke the protocol learns so, and both are over.
func TestPeerIsToldWhy(t *testing.T) {
	d := newDuo(t, Config{})
	s := &Send{Pieces: [][]byte{pattern(1, 300_000)}, Protocol: Get}
	must(t, d.ca.Send(d.now, s))
	d.settle()
	d.cb.say(Control{Type: TypeATS, ID: s.id + 1})
	d.settle()
	if want := new(PeerError); !errors.As(d.ca.Err(), &want) || !errors.Is(d.ca.Err(), ErrState) {
		t.Errorf("one end: %v", d.ca.Err())
	}
	want := new(StatusError)
	if !errors.As(d.cb.Err(), &want) || want.Status != StatusProtocolError {
		t.Errorf("the other end: %v", d.cb.Err())
	}
	if d.a.endpoint.NextSent() != s || !errors.Is(s.Err, ErrState) {
		t.Errorf("the message that was under way: %v", s.Err)
	}
	if err := d.ca.Send(d.now, &Send{}); !errors.Is(err, ErrState) {
		t.Errorf("a further one: %v", err)
	}
	d.nothingLeft()
}

// TestNothingIsGivenBackBeforeGoodbye: while work requests of a connection that says goodbye are
// not complete, the memory that they name stays.
func TestNothingIsGivenBackBeforeGoodbye(t *testing.T) {
	l := newLiar(t, Config{})
	e := l.c.endpoint
	must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{{1}}}))
	var wr verbs.SendWR
	if e.NextWork(l.now, &wr) != l.c.First() || wr.Opcode != verbs.OpWriteImm {
		t.Fatalf("%v", wr.Opcode)
	}
	l.control(Control{Type: TypeMatched})
	if e.NextWork(l.now, &wr) != l.c.First() || wr.Opcode != verbs.OpSend {
		t.Fatalf("%v", wr.Opcode)
	}
	if e.NextWork(l.now, &wr) != nil {
		t.Fatal("work behind the last words")
	}
	ok := verbs.Completion{}
	e.HandleWork(l.now, l.c.First(), &ok)
	if e.NextRequest() != nil || e.NextClosed() != nil || l.c.Err() == nil {
		t.Fatal("memory is given back while BYE is on its way")
	}
	at, set := e.NextDeadline()
	if !set || at != l.now+e.config.Patience {
		t.Fatalf("patience ends at %v, not %v", at, l.now+e.config.Patience)
	}
	e.HandleDeadline(at) // the peer says nothing
	if e.NextClosed() != l.c {
		t.Fatal("not closed")
	}
	l.pipes[1].conn.Abort(l.now, errHungUp)
	l.settle()
	l.nothingLeft()
}
