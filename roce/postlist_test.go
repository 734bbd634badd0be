package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
)

// TestPostSends posts lists: whole, to the first that is refused, and to the end of the queue.
func TestPostSends(t *testing.T) {
	s := newScript(t, options{Depth: 4, Inline: 8})
	list := make([]roce.SendWR, 3)
	for i := range list {
		list[i] = roce.SendWR{
			WRID: uint64(i), Opcode: roce.OpSend, Flags: roce.SendSignaled,
			SGList: s.sge(64*i, 10+i),
		}
	}
	list[1].SGList, list[1].Inline = nil, []byte("inline")
	list[1].Flags |= roce.SendInline
	list[2].RemoteSRQN = 1 << 24
	if n, err := s.qp.PostSends(list); n != 2 {
		t.Errorf("%d posted, %v, want 2 and why not the third", n, err)
	} else {
		wantErr(t, err, roce.ErrInvalid)
	}
	s.Expect(roctest.PSN(s.us(0)), roctest.Payload(s.buf[:10]))
	s.Expect(roctest.PSN(s.us(1)), roctest.Payload([]byte("inline")))
	s.ExpectNothing()
	if n, err := s.qp.PostSends(list[:0]); n != 0 || err != nil {
		t.Errorf("an empty list: %d, %v", n, err)
	}
	list[2].RemoteSRQN = 0
	if n, err := s.qp.PostSends(list); n != 2 {
		t.Errorf("%d posted to a queue with room for 2: %v", n, err)
	} else {
		wantErr(t, err, roce.ErrQueueFull)
	}
	s.Expect(roctest.PSN(s.us(2)))
	s.Expect(roctest.PSN(s.us(3)))
	s.Recv(ack(s.us(3)))
	for _, id := range []uint64{0, 1, 0, 1} {
		s.ExpectCQE(done(id, roce.WCSend))
	}
	if n, err := s.qp.PostSends(list); n != 3 || err != nil {
		t.Errorf("%d posted to an empty queue: %v", n, err)
	}
}

// TestPostRecvs is the same for receives.
func TestPostRecvs(t *testing.T) {
	s := newScriptIn(t, options{Depth: 4, SGE: 1}, roce.StateReset)
	list := []roce.RecvWR{
		{WRID: 1, SGList: s.sge(0, 64)},
		{WRID: 2, SGList: s.sge(64, 64)},
		{WRID: 3, SGList: append(s.sge(0, 1), s.sge(1, 1)...)},
	}
	if n, err := s.qp.PostRecvs(list); n != 0 {
		t.Errorf("%d posted in RESET", n)
	} else {
		wantErr(t, err, roce.ErrState)
	}
	s = newScript(t, options{Depth: 4, SGE: 1})
	for _, tt := range []struct {
		list []roce.RecvWR
		n    int
		err  error
	}{{list, 2, roce.ErrInvalid}, {list[:2], 2, nil}, {list[:2], 0, roce.ErrQueueFull}} {
		n, err := s.qp.PostRecvs(tt.list)
		if n != tt.n {
			t.Errorf("%d posted, want %d", n, tt.n)
		}
		wantErr(t, err, tt.err)
	}
}
