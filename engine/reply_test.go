package engine_test

import (
	"slices"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
)

// A recordingLink is a port that notes what is asked of it, and where its transmit frames are.
type recordingLink struct {
	*simPort
	calls    []string
	reserves int
	out      map[*byte]bool // transmit frames that are reserved
	wrong    int            // frames that were not reserved, or twice
	given    int            // frames reserved in all
	filled   []int          // what RaiseFillTarget was told
}

func (l *recordingLink) Receive(dst []xsk.RxFrame) int {
	l.calls = append(l.calls, "receive")
	return l.simPort.Receive(dst)
}

func (l *recordingLink) Flush() error {
	l.calls = append(l.calls, "flush")
	return l.simPort.Flush()
}

func (l *recordingLink) Reserve(dst []xsk.TxFrame) int {
	n := l.simPort.Reserve(dst)
	l.reserves++
	l.given += n
	for i := range dst[:n] {
		at := &dst[i].Data[0]
		if l.out[at] {
			l.wrong++
		}
		l.out[at] = true
	}
	return n
}

// back notes that frames are given back, sent or not.
func (l *recordingLink) back(frames []xsk.TxFrame) {
	for i := range frames {
		at := &frames[i].Data[0]
		if !l.out[at] {
			l.wrong++
		}
		delete(l.out, at)
	}
}

func (l *recordingLink) Transmit(frames []xsk.TxFrame) {
	l.back(frames)
	l.simPort.Transmit(frames)
}

func (l *recordingLink) Return(frames []xsk.TxFrame) {
	l.back(frames)
	l.simPort.Return(frames)
}

func (l *recordingLink) RaiseFillTarget(frames int) { l.filled = append(l.filled, frames) }

// recordingPair is two devices in direct mode, the second on a recordingLink, and a connection.
func recordingPair(t *testing.T) (a, b *side, link *recordingLink) {
	t.Helper()
	network := newNetwork(t, 1, engine.NewSystemClock(), sim.Faults{})
	o := engine.Options{Direct: true}
	a = newSide(t, openPort(t, network, 0, o))
	link = &recordingLink{simPort: newPort(t, network, 1), out: map[*byte]bool{}}
	dev, err := engine.OpenLink(link, link, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if link.wrong != 0 || len(link.out) != 0 || link.given == 0 {
			t.Errorf("of %d transmit frames %d are lost, %d were not the device's", link.given,
				len(link.out), link.wrong)
		}
	})
	b = newSide(t, dev)
	connect(t, a, b)
	return a, b, link
}

// receives posts so many receives.
func (s *side) receives(t *testing.T, n int) {
	t.Helper()
	for range n {
		err := s.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{s.mr.SGE(0, regionSize)}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// send posts a SEND of n bytes.
func (s *side) send(t *testing.T, n int) {
	t.Helper()
	err := s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend, SGList: []roce.SGE{s.mr.SGE(0, n)}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplyLeavesFirst: on a device in direct mode the reply to what a poll returned
// leaves before anything else is looked at, and only then.
func TestReplyLeavesFirst(t *testing.T) {
	a, b, link := recordingPair(t)
	var done [4]roce.Completion
	poll := func(s *side) int {
		n, err := s.cq.Poll(done[:])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	a.receives(t, 10)
	b.receives(t, 10)
	for _, reply := range []bool{true, false, true} {
		a.send(t, 64)
		for poll(b) == 0 {
			poll(a)
		}
		a.send(t, 64) // comes before the reply is made
		poll(a)
		link.calls = nil
		want := []string{"receive"}
		if reply {
			b.send(t, 64)
			want = []string{"flush"}
		}
		poll(b)
		if !slices.Equal(link.calls[:1], want) {
			t.Errorf("reply %t: it did %v first, want %v", reply, link.calls, want)
		}
		for came := 0; reply && came == 0; came = poll(a) {
			poll(b)
		}
		for range 10 { // the rest
			poll(a)
			poll(b)
		}
	}
}

// TestTransmitFramesComeHome: of the frames that a device reserves each is sent or
// given back once, and a short answer does not make it reserve anew; see bookPair.
func TestTransmitFramesComeHome(t *testing.T) {
	a, b, link := recordingPair(t)
	var done [4]roce.Completion
	for range 10 {
		a.receives(t, 1)
		b.receives(t, 20)
		link.reserves = 0
		for range 20 {
			a.send(t, 64)
			for n := 0; n == 0; {
				_, _ = a.cq.Poll(done[:])
				n, _ = b.cq.Poll(done[:])
			}
			_, _ = b.cq.Poll(done[:]) // the acknowledgement leaves
		}
		if link.reserves > 3 {
			t.Errorf("for 20 acknowledgements it reserved %d times", link.reserves)
		}
		b.send(t, regionSize) // more than there are frames for
		for n := 0; n == 0; {
			_, _ = b.cq.Poll(done[:])
			n, _ = a.cq.Poll(done[:])
		}
	}
}

// TestLastAcknowledgementLeaves: who has seen the last message and ends the QP without a reply
// still acknowledges it.
func TestLastAcknowledgementLeaves(t *testing.T) {
	for _, c := range []struct {
		how string
		end func(*engine.QP) error
	}{
		{"ERR", func(qp *engine.QP) error {
			return qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState)
		}},
		{"RESET", func(qp *engine.QP) error {
			return qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState)
		}},
		{"Close", (*engine.QP).Close},
	} {
		t.Run(c.how, func(t *testing.T) {
			a, b, _ := recordingPair(t)
			b.receives(t, 1)
			err := a.qp.PostSend(&roce.SendWR{
				Opcode: roce.OpSend, Flags: roce.SendSignaled,
				SGList: []roce.SGE{a.mr.SGE(0, 64)},
			})
			if err != nil {
				t.Fatal(err)
			}
			var done [4]roce.Completion
			for n := 0; n == 0; {
				_, _ = a.cq.Poll(done[:])
				n, _ = b.cq.Poll(done[:])
			}
			if err := c.end(b.qp); err != nil {
				t.Fatal(err)
			}
			for n := 0; n == 0; {
				n, _ = a.cq.Poll(done[:])
			}
			if done[0].Status != roce.StatusSuccess {
				t.Errorf("the SEND ended with %s", done[0].Status)
			}
		})
	}
}
