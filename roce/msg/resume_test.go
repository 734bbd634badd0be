package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/verbs"
)

// newTwo joins two nodes by two rails.
func newTwo(t *testing.T, c Config) *railed {
	t.Helper()
	c.Rails = 2
	x := newRailed(t, 1, allCapabilities, c, c)
	x.settle()
	return x
}

// TestLateFramesOfALostRail: a frame whose rail was given up goes by another one. When it arrives
// after all by the old one, the peer's queue pair takes it no more: its slot may have another
// frame by then.
func TestLateFramesOfALostRail(t *testing.T) {
	x := newTwo(t, Config{})
	first := x.ca.First()
	p := first.User.(*pipe)
	must(t, x.ca.Send(x.now, &Send{Pieces: [][]byte{{1}}}))
	var wr verbs.SendWR
	if r := x.a.endpoint.NextWork(x.now, &wr); r != first || wr.Opcode != verbs.OpWriteImm {
		t.Fatalf("%v", wr.Opcode)
	}
	late := p.gathered(wr)
	p.cut, p.peer.cut = true, true
	p.kill()
	failed := verbs.Completion{WRID: wr.WRID, Status: verbs.StatusRetryExcErr}
	x.a.endpoint.HandleWork(x.now, first, &failed)
	x.settle()
	if _, messages := x.cb.source.Unexpected(); messages != 1 || x.cb.peerFrames != 1 {
		t.Fatalf("%d bytes, %d frames", messages, x.cb.peerFrames)
	}
	slots := bytes.Clone(x.cb.in[0].memory.Bytes)
	p.late = append(p.late, late)
	x.settle()
	if !p.peer.dead || !bytes.Equal(slots, x.cb.in[0].memory.Bytes) || x.cb.peerFrames != 1 {
		t.Error("the late frame was taken")
	}
	r := &Receive{Pieces: [][]byte{make([]byte, 8)}}
	must(t, x.b.endpoint.Receive(x.now, r))
	if x.b.endpoint.NextReceived() != r || r.Length != 1 || r.Pieces[0][0] != 1 {
		t.Errorf("%d bytes", r.Length)
	}
	if x.b.endpoint.Receive(x.now, r); x.b.endpoint.NextReceived() != nil {
		t.Error("it came twice")
	}
}

// TestResumeThatCannotBe: a RESUME on a connection of one rail, by the rail that is in use, and of
// more than was sent.
func TestResumeThatCannotBe(t *testing.T) {
	say := func(x *world, r *Rail, m Control) {
		var b [MaxControlLen]byte
		m.Type = TypeResume
		wc := verbs.Completion{Opcode: verbs.WCRecv}
		r.conn.endpoint.HandleArrival(x.now, r, &wc, m.Put(b[:]))
		x.settle()
	}
	l := newLiar(t, Config{})
	say(l.world, l.c.First(), Control{Number: 1})
	l.wantBroken(ErrState)
	for _, c := range []struct {
		name string
		rail int
		m    Control
		want error
	}{
		{"by the rail in use", 0, Control{}, ErrState},
		{"control messages that were not sent", 1, Control{ID: 1}, ErrSequence},
		{"fewer than were acknowledged", 1, Control{ID: ^uint32(0)}, ErrSequence},
		{"frames that were not sent", 1, Control{Len: 1}, ErrSequence},
		{"slots that were not used", 1, Control{Released: 1}, ErrCredit},
	} {
		x := newTwo(t, Config{})
		c.m.Number = 1
		c.m.ID += x.ca.controls
		say(x.world, x.ca.rails[c.rail], c.m)
		if p := new(PeerError); !errors.As(x.ca.Err(), &p) || !errors.Is(x.ca.Err(), c.want) {
			t.Errorf("%s: %v, not %v", c.name, x.ca.Err(), c.want)
		}
	}
	x := newTwo(t, Config{})
	say(x.world, x.ca.rails[1], Control{Number: 0xffff}) // from before the first one
	if x.ca.Err() != nil || x.ca.control != x.ca.First() {
		t.Errorf("an old one: %v", x.ca.Err())
	}
}
