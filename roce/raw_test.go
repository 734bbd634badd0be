package roce_test

import (
	"bytes"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

func newRaw(t *testing.T) *script {
	t.Helper()
	return newScript(t, options{Type: roce.TypeRawPacket, Inline: 64})
}

// expectFrame takes the next frame, byte for byte.
func (s *script) expectFrame(want []byte) {
	s.t.Helper()
	if n := s.qp.NextPacket(s.now, s.frame); !bytes.Equal(s.frame[:n], want) {
		s.t.Fatalf("sent %d bytes, want %d: %x", n, len(want), s.frame[:n])
	}
}

// TestRawSend: frames go out as they are.
func TestRawSend(t *testing.T) {
	s := newRaw(t)
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpSend, SGList: split(s.sge(0, 60))})
	s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpSend, SGList: s.sge(100, 14)})
	inline := bytes.Clone(s.buf[200:264])
	s.Post(roce.SendWR{WRID: 3, Opcode: roce.OpSend, Flags: roce.SendInline, Inline: inline})
	s.expectFrame(s.buf[:60])
	s.expectFrame(s.buf[100:114])
	s.expectFrame(s.buf[200:264])
	s.ExpectNothing()
	s.ExpectCQE(done(1, roce.WCSend), done(2, roce.WCSend), done(3, roce.WCSend))
	wantErr(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSendImm}), roce.ErrInvalid, "RAW_PACKET")
}

// TestRawLength: what is no frame, or does not fit one, is an error that stops the
// send queue until RTS.
func TestRawLength(t *testing.T) {
	for _, n := range []int{0, 13, 8193} {
		s := newRaw(t)
		s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpSend, SGList: s.sge(0, n)})
		s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpSend, SGList: s.sge(0, 20)})
		s.ExpectNothing()
		s.ExpectCQE(failed(1, roce.StatusLocLenErr), failed(2, roce.StatusWRFlushErr))
		s.ExpectState(roce.StateSQE)
		s.move(roce.StateRTS)
		s.Post(roce.SendWR{WRID: 3, Opcode: roce.OpSend, SGList: s.sge(0, 20)})
		s.expectFrame(s.buf[:20])
		s.ExpectNothing()
	}
}

// TestRawReceive: frames in one or two parts fill receives in order; what has none,
// or does not fit, is dropped and counted.
func TestRawReceive(t *testing.T) {
	s := newRaw(t)
	frame := make([]byte, 100)
	fill(frame, 5)
	must(t, s.qp.HandleFrame(0, frame, nil))
	s.ExpectCount(counter.OutOfBuffer, 1)
	s.PostRecv(1, 0, 100)
	s.PostRecv(2, 200, 100)
	must(t, s.qp.HandleFrame(0, frame, []byte{1}))
	s.ExpectCount(counter.DropTooLong, 1)
	must(t, s.qp.HandleFrame(0, frame, nil))
	must(t, s.qp.HandleFrame(0, frame[:33], frame[33:99]))
	s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 100},
		roce.Completion{WRID: 2, Opcode: roce.WCRecv, ByteLen: 99})
	if !bytes.Equal(s.buf[:100], frame) || !bytes.Equal(s.buf[200:299], frame[:99]) {
		t.Error("frames differ")
	}
	s.PostRecv(3, 0, 100)
	s.Recv(roctest.Packet{Opcode: wire.RCSendOnly}) // RoCE is not for it
	s.ExpectCount(counter.DropQPState, 1)
	s.move(roce.StateErr)
	s.ExpectRecvCQE(failed(3, roce.StatusWRFlushErr))
	must(t, s.qp.HandleFrame(0, frame, nil))
	s.ExpectCount(counter.DropQPState, 2)

	rc := newScript(t, options{})
	wantErr(t, rc.qp.HandleFrame(0, frame, nil), roce.ErrInvalid, "RC")
}

// TestRawBadReceive: a receive in memory that is not the QP's ends the QP.
func TestRawBadReceive(t *testing.T) {
	s := newRaw(t)
	list := s.sge(0, 64)
	list[0].LKey ^= 1
	must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 1, SGList: list}))
	s.PostRecv(2, 0, 64)
	must(t, s.qp.HandleFrame(0, make([]byte, 20), nil))
	s.ExpectRecvCQE(failed(1, roce.StatusLocProtErr), failed(2, roce.StatusWRFlushErr))
	s.ExpectState(roce.StateErr)
}
