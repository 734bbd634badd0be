package roce_test

import (
	"errors"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// in returns a script whose QP is in a state.
func in(t *testing.T, state roce.State) *script {
	t.Helper()
	if state <= roce.StateRTS {
		return newScriptIn(t, options{}, state)
	}
	s := newScript(t, options{})
	s.move(state)
	return s
}

var states = []roce.State{
	roce.StateReset, roce.StateInit, roce.StateRTR, roce.StateRTS,
	roce.StateSQD, roce.StateErr,
}

// TestPostInEachState (rc.md of the verbs: table of states).
func TestPostInEachState(t *testing.T) {
	for _, state := range states {
		s := in(t, state)
		err := s.qp.PostSend(&roce.SendWR{WRID: 1, Opcode: roce.OpSend, SGList: s.sge(0, 1)})
		sends := state == roce.StateRTS || state == roce.StateSQD || state == roce.StateErr
		if (err == nil) != sends || err != nil && !errors.Is(err, roce.ErrState) {
			t.Errorf("%s: post send: %v", state, err)
		}
		err = s.qp.PostRecv(&roce.RecvWR{WRID: 2})
		receives := state != roce.StateReset
		if (err == nil) != receives || err != nil && !errors.Is(err, roce.ErrState) {
			t.Errorf("%s: post receive: %v", state, err)
		}
		switch state {
		case roce.StateRTS:
			s.Expect(roctest.PSN(s.us(0)))
		case roce.StateErr:
			s.ExpectNothing()
			s.ExpectCQE(failed(1, roce.StatusWRFlushErr))
			s.ExpectRecvCQE(failed(2, roce.StatusWRFlushErr))
		default:
			s.ExpectNothing()
			s.ExpectNoCQE()
		}
	}
}

// TestServedInEachState: requests are executed in RTR, RTS and SQD.
func TestServedInEachState(t *testing.T) {
	for _, state := range states {
		s := in(t, state)
		s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 4, []byte("data")))
		if state == roce.StateRTR || state == roce.StateRTS || state == roce.StateSQD {
			s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
		}
		s.ExpectNothing()
	}
}

// TestPostRefuses what no queue can take, and changes nothing.
func TestPostRefuses(t *testing.T) {
	s := newScript(t, options{Depth: 2, SGE: 2})
	big := []roce.SGE{{Length: 1 << 31}, {Length: 1}}
	most := []roce.SGE{{Length: 1<<32 - 1}, {Length: 1<<32 - 1}}
	for _, tt := range []struct {
		wr    roce.SendWR
		words string
	}{
		{roce.SendWR{Opcode: 10}, "opcode 10"},
		{roce.SendWR{Opcode: roce.OpFetchAdd}, "ATOMIC_FETCH_AND_ADD of 0 bytes"},
		{roce.SendWR{Opcode: 255}, "opcode 255"},
		{roce.SendWR{Opcode: roce.OpSend, Flags: 1 << 7}, "send flags 0x80"},
		{roce.SendWR{Opcode: roce.OpSend, SGList: make([]roce.SGE, 3)}, "3 SGEs"},
		{roce.SendWR{Opcode: roce.OpWrite, SGList: big}, "2147483649 bytes"},
		{roce.SendWR{Opcode: roce.OpRead, SGList: most}, "8589934590 bytes"},
	} {
		wantErr(t, s.qp.PostSend(&tt.wr), roce.ErrInvalid, tt.words)
	}
	wantErr(t, s.qp.PostRecv(&roce.RecvWR{SGList: make([]roce.SGE, 3)}), roce.ErrInvalid, "3 SGEs")
	s.Send(1, 1)
	s.Send(2, 1)
	wantErr(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend}), roce.ErrQueueFull)
	s.PostRecv(1, 0, 1)
	s.PostRecv(2, 0, 1)
	wantErr(t, s.qp.PostRecv(&roce.RecvWR{}), roce.ErrQueueFull)
	if snap := s.qp.Snapshot(); snap.SendPosted != 2 || snap.RecvPosted != 2 {
		t.Errorf("posted: %s", snap)
	}
}

// TestPostCopies: the caller may use its list again at once.
func TestPostCopies(t *testing.T) {
	s := newScript(t, options{})
	list := s.sge(8, 4)
	s.Post(roce.SendWR{Opcode: roce.OpSend, SGList: list})
	list[0] = roce.SGE{}
	s.Expect(roctest.Payload(s.buf[8:12]))
}

// TestSQD: what has begun is finished, the rest waits; back in RTS it goes on.
func TestSQD(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 2*s.mtu())
	s.Send(2, 1)
	s.Expect(roctest.PSN(s.us(0)))
	s.move(roce.StateSQD)
	s.Send(3, 1)
	s.Expect(roctest.PSN(s.us(1)))
	s.ExpectNothing()
	a := s.qp.Attr()
	a.State = roce.StateRTS
	wantErr(t, s.qp.Modify(s.now, &a, roce.AttrState), roce.ErrState, "draining")
	s.Recv(ack(s.us(1)))
	s.ExpectCQE(done(1, roce.WCSend))
	s.ExpectNothing()
	s.move(roce.StateRTS)
	s.Expect(roctest.PSN(s.us(2)))
	s.Expect(roctest.PSN(s.us(3)))
}

// TestResetForgets everything: work, completions, PSNs, MSN, READs.
func TestResetForgets(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 1)
	s.Expect(roctest.PSN(s.us(0)))
	s.Recv(ack(s.us(0)))
	s.Read(2, 1)
	s.Send(3, 1)
	s.PostRecv(4, 0, 1)
	s.PostRecv(5, 0, 1)
	s.Recv(request(wire.RCSendOnly, s.it(0), nil), s.readRequest(s.it(1), 0, 8))
	s.move(roce.StateReset)
	s.ExpectNoCQE()
	s.ExpectNothing()
	s.ExpectDeadline(0)
	want := roce.Snapshot{QPN: qpnA, Type: roce.TypeRC}
	if got := s.qp.Snapshot(); got != want {
		t.Errorf("%+v", got)
	}
	s.connect(qpnB, s.o, roce.StateRTS)
	s.Recv(s.readRequest(s.it(1).Sub(2), 0, 8))
	s.ExpectNothing()
	s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 0, nil))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.Send(6, 1)
	s.Expect(roctest.PSN(s.us(0)))
	s.Recv(ack(s.us(0)))
	s.ExpectCQE(done(6, roce.WCSend))
}

// TestResetPurgesOnlyItsOwn completions from a CQ that QPs share.
func TestResetPurgesOnlyItsOwn(t *testing.T) {
	s := newScript(t, options{})
	c := s.config(s.o)
	other := *s
	e := *s.endpoint
	other.endpoint = &e
	var err error
	e.qp, err = roce.NewQP(7, c)
	must(t, err)
	e.connect(qpnB, s.o, roce.StateRTS)
	for i := range uint64(6) {
		sc := s
		if i%2 == 1 {
			sc = &other
		}
		sc.Send(i, 0)
		sc.Expect()
		sc.Recv(ack(sc.us(uint32(i / 2))))
	}
	s.move(roce.StateReset)
	var ids []uint64
	for _, wc := range drain(t, s.send) {
		if wc.QPN != 7 {
			t.Errorf("completion %+v was left", wc)
		}
		ids = append(ids, wc.WRID)
	}
	if len(ids) != 3 || ids[0] != 1 || ids[1] != 3 || ids[2] != 5 {
		t.Errorf("left %v, want 1 3 5", ids)
	}
}

// TestErrorFlushes both queues in order, and nothing is sent or served any more.
func TestErrorFlushes(t *testing.T) {
	s := newScript(t, options{Unsignaled: true})
	for i := range uint64(3) {
		s.Send(i, s.mtu()+1)
		s.PostRecv(10+i, 0, 1024)
	}
	s.Expect(roctest.PSN(s.us(0)))
	s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu())))
	s.move(roce.StateErr)
	for i := range uint64(3) {
		s.ExpectCQE(failed(i, roce.StatusWRFlushErr))
		s.ExpectRecvCQE(failed(10+i, roce.StatusWRFlushErr))
	}
	if snap := s.qp.Snapshot(); snap.SendPosted+snap.SendBegun+snap.RecvPosted != 0 {
		t.Errorf("left: %+v", snap)
	}
	s.ExpectNothing()
	s.ExpectDeadline(0)
	s.Recv(ack(s.us(0)), request(wire.RCSendLast, s.it(1), []byte("x")))
	s.ExpectNothing()
	s.ExpectNoCQE()
	s.Send(7, 1)
	s.qp.HandleDeadline(s.now)
	s.ExpectCQE(failed(7, roce.StatusWRFlushErr))
}
