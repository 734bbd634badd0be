package roce_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A script is a conversation with one queue pair: the test is the peer. Our
// first PSN is us(0), the one that the peer uses first is it(0).
type script struct {
	*endpoint
	t     *testing.T
	now   roce.Time
	o     options
	path  wire.Template // of the peer's packets
	frame []byte
}

// newScript returns a script with a QP in RTS.
func newScript(t *testing.T, o options) *script {
	t.Helper()
	return newScriptIn(t, o, roce.StateRTS)
}

// newScriptIn returns a script with a QP in a state on the way to RTS.
func newScriptIn(t *testing.T, o options, state roce.State) *script {
	t.Helper()
	o = o.filled()
	s := &script{endpoint: newEndpoint(t, qpnA, o), t: t, o: o, frame: make([]byte, 8192)}
	fill(s.buf, 1)
	s.connect(qpnB, o, state)
	must(t, s.path.Init(pathTo(qpnA, o.Framing)))
	return s
}

// us is the PSN of our n-th request packet, it that of the peer's.
func (s *script) us(n uint32) wire.PSN { return s.o.SQPSN.Add(n) }
func (s *script) it(n uint32) wire.PSN { return s.o.RQPSN.Add(n) }

// mtu is the path MTU in bytes.
func (s *script) mtu() int { return s.o.MTU.Bytes() }

// Post posts to the send queue; a WR without a list gets n bytes at off.
func (s *script) Post(wr roce.SendWR) {
	s.t.Helper()
	must(s.t, s.qp.PostSend(&wr))
}

// Send posts a SEND of n bytes from the start of the region.
func (s *script) Send(id uint64, n int) {
	s.t.Helper()
	s.Post(roce.SendWR{WRID: id, Opcode: roce.OpSend, SGList: s.sge(0, n)})
}

// Read posts a READ of n bytes to the start of the region.
func (s *script) Read(id uint64, n int) {
	s.t.Helper()
	s.Post(roce.SendWR{
		WRID: id, Opcode: roce.OpRead, SGList: s.sge(0, n),
		RemoteAddr: 0x1000, RKey: 0x77,
	})
}

// PostRecv posts a receive of n bytes at off.
func (s *script) PostRecv(id uint64, off, n int) {
	s.t.Helper()
	must(s.t, s.postRecv(&roce.RecvWR{WRID: id, SGList: s.sge(off, n)}))
}

// Recv gives the QP packets from the peer.
func (s *script) Recv(packets ...roctest.Packet) {
	s.t.Helper()
	for _, p := range packets {
		if p.DestQP == 0 {
			p.DestQP = qpnA
		}
		s.RecvFrame(p.Frame(&s.path))
	}
}

// RecvFrame gives the QP a frame.
func (s *script) RecvFrame(frame []byte) {
	s.t.Helper()
	var p wire.Packet
	if r := p.Decode(frame, nil); r != wire.OK {
		s.t.Fatalf("the script made a bad packet: %s", r)
	}
	s.qp.HandlePacket(s.now, &p)
}

// ack is a positive acknowledge from the peer.
func ack(psn wire.PSN) roctest.Packet { return ackWith(psn, wire.ACKNoCredits) }

// ackWith is an acknowledge packet with a syndrome.
func ackWith(psn wire.PSN, s wire.Syndrome) roctest.Packet {
	return roctest.Packet{Opcode: wire.RCAck, PSN: psn, AETH: wire.AETH{Syndrome: s}}
}

// response is a READ response packet.
func response(op wire.Opcode, psn wire.PSN, payload []byte) roctest.Packet {
	return roctest.Packet{
		Opcode: op, PSN: psn, Payload: payload,
		AETH: wire.AETH{Syndrome: wire.ACKNoCredits},
	}
}

// request is a request packet that asks for an acknowledge.
func request(op wire.Opcode, psn wire.PSN, payload []byte) roctest.Packet {
	return roctest.Packet{Opcode: op, PSN: psn, Payload: payload, AckReq: true}
}

// Expect takes the next packet that the QP sends and judges it.
func (s *script) Expect(checks ...roctest.Check) {
	s.t.Helper()
	n := s.qp.NextPacket(s.now, s.frame)
	if n == 0 {
		s.t.Fatalf("nothing to send; %s", s.qp.Snapshot())
	}
	if err := roctest.Frame(s.frame[:n], append(checks, roctest.DestQP(qpnB))...); err != nil {
		s.t.Fatal(err)
	}
}

// ExpectAck takes an acknowledge packet.
func (s *script) ExpectAck(psn wire.PSN, syndrome wire.Syndrome, msn uint32) {
	s.t.Helper()
	s.Expect(roctest.Ack(psn, syndrome, msn))
}

// ExpectNothing wants the QP to have nothing to send now.
func (s *script) ExpectNothing() {
	s.t.Helper()
	if n := s.qp.NextPacket(s.now, s.frame); n != 0 {
		var p wire.Packet
		p.Decode(s.frame[:n], nil)
		s.t.Fatalf("sent %s, want nothing", roctest.Describe(&p))
	}
}

// Advance moves the time, and calls the deadline when it has come.
func (s *script) Advance(d roce.Time) {
	s.t.Helper()
	s.now += d
	if at, ok := s.qp.NextDeadline(); ok && at <= s.now {
		s.qp.HandleDeadline(s.now)
	}
}

// ExpectDeadline wants the next deadline this far from now, 0 for none.
func (s *script) ExpectDeadline(d roce.Time) {
	s.t.Helper()
	at, ok := s.qp.NextDeadline()
	if ok != (d != 0) || ok && at-s.now != d {
		s.t.Fatalf("deadline in %d ns (%t), want %d", at-s.now, ok, d)
	}
}

// ExpectCQE takes the next send completions and compares all but the time.
func (s *script) ExpectCQE(want ...roce.Completion) { s.t.Helper(); s.expectCQE(s.send, want) }

// ExpectRecvCQE takes the next receive completions.
func (s *script) ExpectRecvCQE(want ...roce.Completion) { s.t.Helper(); s.expectCQE(s.recv, want) }

func (s *script) expectCQE(cq *roce.CQ, want []roce.Completion) {
	s.t.Helper()
	for i := range want {
		var got [1]roce.Completion
		n, err := cq.Poll(got[:])
		if err != nil || n != 1 {
			s.t.Fatalf("no completion (%v), want %+v; %s", err, want[i], s.qp.Snapshot())
		}
		want[i].QPN, got[0].Time = qpnA, 0
		if w := want[i]; w.Status != roce.StatusSuccess {
			got[0].Opcode, got[0].ByteLen = w.Opcode, w.ByteLen // not valid
		}
		if got[0] != want[i] {
			s.t.Fatalf("completion %+v, want %+v", got[0], want[i])
		}
	}
}

// ExpectNoCQE wants both CQs to be empty.
func (s *script) ExpectNoCQE() {
	s.t.Helper()
	if all := append(drain(s.t, s.send), drain(s.t, s.recv)...); len(all) != 0 {
		s.t.Fatalf("completions %+v, want none", all)
	}
}

// ExpectEvents wants exactly these asynchronous events since the last call.
func (s *script) ExpectEvents(want ...roce.Event) {
	s.t.Helper()
	if !slices.Equal(s.events, want) {
		s.t.Fatalf("events %v, want %v", s.events, want)
	}
	s.events = nil
}

// ExpectWord wants eight bytes of the region to be a number in host order.
func (s *script) ExpectWord(off int, want uint64) {
	s.t.Helper()
	if got := binary.NativeEndian.Uint64(s.buf[off:]); got != want {
		s.t.Fatalf("the word at %d is %#x, want %#x", off, got, want)
	}
}

// ExpectState wants the QP in a state.
func (s *script) ExpectState(want roce.State) {
	s.t.Helper()
	if got := s.qp.State(); got != want {
		s.t.Fatalf("state %s, want %s", got, want)
	}
}

// ExpectCount wants a counter to have a value.
func (s *script) ExpectCount(id counter.ID, want uint64) {
	s.t.Helper()
	if got := s.count[id]; got != want {
		s.t.Fatalf("%s is %d, want %d", id, got, want)
	}
}

// done is the successful completion of a send work request.
func done(id uint64, op roce.WCOpcode) roce.Completion {
	return roce.Completion{WRID: id, Opcode: op}
}

// failed is a completion with an error.
func failed(id uint64, status roce.Status) roce.Completion {
	return roce.Completion{WRID: id, Status: status}
}

// modify changes attributes of the QP and wants it to work.
func (s *script) modify(mask roce.AttrMask, change func(*roce.Attr)) {
	s.t.Helper()
	a := s.qp.Attr()
	change(&a)
	must(s.t, s.qp.Modify(s.now, &a, mask))
}

// move changes only the state.
func (s *script) move(to roce.State) {
	s.t.Helper()
	s.modify(roce.AttrState, func(a *roce.Attr) { a.State = to })
}
