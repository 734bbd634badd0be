package roce_test

import (
	"bytes"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// pagedScript is a script whose region has pages, with a receive of 4 KiB at 8192.
func pagedScript(t *testing.T, o options) *script {
	t.Helper()
	o.Paged, o.Rights = true, atomicRights
	s := newScript(t, o)
	if s.qp.Type() != roce.TypeXRCSend {
		s.PostRecv(1, pagedRecv, 4096)
	}
	return s
}

const pagedRecv = 8192

// miss makes the page at an offset be absent so many times.
func (s *script) miss(off, times int) { s.pages.misses[off/fakePage] = times }

// pagedRequests is every operation at the responder: packets, of which one comes to a page
// that is absent.
var pagedRequests = []struct {
	name    string
	packets func(s *script, data []byte) []roctest.Packet
	at      int // the packet that meets it
	off     int // where it is in the region
	changes bool
}{
	{"SEND ONLY", pagedSends(1), 0, pagedRecv, true},
	{"SEND FIRST", pagedSends(3), 0, pagedRecv, true},
	{"SEND MIDDLE", pagedSends(3), 1, pagedRecv + 256, true},
	{"SEND LAST", pagedSends(3), 2, pagedRecv + 512, true},
	{"WRITE ONLY", pagedWrites(1), 0, 1024, true},
	{"WRITE FIRST", pagedWrites(3), 0, 1024, true},
	{"WRITE MIDDLE", pagedWrites(3), 1, 1280, true},
	{"WRITE LAST IMM", pagedWrites(3), 2, 1536, true},
	{"READ", func(s *script, _ []byte) []roctest.Packet {
		return []roctest.Packet{s.readRequest(s.it(0), 1024, 256)}
	}, 0, 1024, false},
	{"READ, a page behind", func(s *script, _ []byte) []roctest.Packet {
		return []roctest.Packet{s.readRequest(s.it(0), 1000, 256)}
	}, 0, 1024, false},
	{"FETCH_ADD", func(s *script, _ []byte) []roctest.Packet {
		return []roctest.Packet{s.atomic(wire.RCFetchAdd, s.it(0), 128, 5, 0)}
	}, 0, 1024, true},
	{"CMP_SWP", func(s *script, _ []byte) []roctest.Packet {
		return []roctest.Packet{s.atomic(wire.RCCmpSwap, s.it(0), 128, 5, 0)}
	}, 0, 1024, true},
	{"ATOMIC_WRITE", func(s *script, data []byte) []roctest.Packet {
		return []roctest.Packet{{
			Opcode: wire.RCAtomicWrite, PSN: s.it(0), Payload: data[:8],
			RETH: wire.RETH{VA: s.word(128), RKey: s.region.RKey(), DMALen: 8},
		}}
	}, 0, 1024, true},
	{"FLUSH", func(s *script, _ []byte) []roctest.Packet {
		return []roctest.Packet{s.flushRequest(s.it(0), wire.FlushGlobal, wire.FlushRange, 1024, 8)}
	}, 0, 1024, false},
}

func pagedSends(n int) func(*script, []byte) []roctest.Packet {
	return func(s *script, data []byte) (list []roctest.Packet) {
		ops := []wire.Opcode{wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLast}
		if n == 1 {
			ops = []wire.Opcode{wire.RCSendOnly}
		}
		for i, op := range ops {
			list = append(list, request(op, s.it(uint32(i)), data[256*i:][:256]))
		}
		return list
	}
}

func pagedWrites(n int) func(*script, []byte) []roctest.Packet {
	return func(s *script, data []byte) (list []roctest.Packet) {
		ops := []wire.Opcode{wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLastImm}
		if n == 1 {
			ops = []wire.Opcode{wire.RCWriteOnly}
		}
		for i, op := range ops {
			payload := data[256*i:][:256]
			list = append(list, s.writeRequest(op, s.it(uint32(i)), 1024, 256*n, payload))
		}
		return list
	}
}

// drainFrames takes all that the QP sends.
func (s *script) drainFrames() (n int) {
	for s.qp.NextPacket(s.now, s.frame) != 0 {
		n++
	}
	return n
}

// TestODPResponderSendsRNR: a request that meets an absent page is answered with an RNR NAK,
// ever longer ones, and nothing is done; when the page is there it is executed, once. A page
// that does not exist is a remote access error.
func TestODPResponderSendsRNR(t *testing.T) {
	codes := []uint8{7, 9, 11, 13, 15, 17, 19, 21, 21}
	data := make([]byte, 1024)
	fill(data, 5)
	for _, tt := range pagedRequests {
		t.Run(tt.name, func(t *testing.T) {
			s := pagedScript(t, options{})
			packets := tt.packets(s, data)
			clear(s.buf)
			s.Recv(packets[:tt.at]...)
			s.drainFrames()
			before := bytes.Clone(s.buf)
			for _, code := range codes {
				s.miss(tt.off, 1)
				s.Recv(packets[tt.at])
				s.Expect(roctest.PSN(s.it(uint32(tt.at))),
					roctest.Syndrome(wire.RNRSyndrome(code)))
				s.Recv(request(wire.RCSendOnly, s.it(uint32(tt.at)+1), nil)) // is no news
				s.ExpectNothing()
			}
			s.ExpectCount(counter.PageRNR, uint64(len(codes)))
			s.ExpectNoCQE()
			if !bytes.Equal(s.buf, before) {
				t.Error("memory was changed by a request that was refused")
			}
			for range 2 { // then once more: a duplicate
				s.Recv(packets[tt.at:]...)
				s.drainFrames()
			}
			s.ExpectState(roce.StateRTS)
			end := s.it(uint32(len(packets)))
			if snap := s.qp.Snapshot(); snap.ExpectedPSN != end || snap.MSN != 1 {
				t.Errorf("not executed once: %+v", snap)
			}
			if tt.changes == bytes.Equal(s.buf, before) {
				t.Errorf("changed memory: %t, want %t", !tt.changes, tt.changes)
			}
			if tt.name == "FETCH_ADD" {
				s.ExpectWord(1024, 5)
			}
		})
		t.Run(tt.name+" unmapped", func(t *testing.T) {
			s := pagedScript(t, options{})
			packets := tt.packets(s, data)
			s.Recv(packets[:tt.at]...)
			s.drainFrames()
			s.pages.gone[tt.off/fakePage] = true
			s.Recv(packets[tt.at])
			nak, status := wire.NAKRemoteAccessError, roce.StatusWRFlushErr
			if tt.off >= pagedRecv {
				nak, status = wire.NAKRemoteOperationalError, roce.StatusLocProtErr
			}
			if tt.name == "WRITE LAST IMM" {
				status = roce.StatusLocAccessErr // of the receive that it had taken
			}
			s.Expect(roctest.PSN(s.it(uint32(tt.at))), roctest.Syndrome(nak))
			s.ExpectState(roce.StateErr)
			s.ExpectRecvCQE(failed(1, status))
		})
	}
}

// TestODPAsksForWholeMessage: whoever meets one absent page asks for all that its message
// will need.
func TestODPAsksForWholeMessage(t *testing.T) {
	s := pagedScript(t, options{})
	for i := range 8 {
		s.miss(1024+256*i, 2)
	}
	s.Recv(s.writeRequest(wire.RCWriteFirst, s.it(0), 1024, 2048, make([]byte, 256)))
	s.Expect(roctest.Syndrome(wire.RNRSyndrome(7)))
	if s.pages.asked != 9 { // the first one twice
		t.Errorf("a WRITE of 8 pages asked for %d", s.pages.asked)
	}
	s.miss(pagedRecv, 2)
	s.pages.asked = 0
	for i := 1; i < 16; i++ {
		s.miss(pagedRecv+256*i, 1)
	}
	s = pagedScript(t, options{})
	for i := range 16 {
		s.miss(pagedRecv+256*i, 2)
	}
	s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, 256)))
	s.Expect(roctest.Syndrome(wire.RNRSyndrome(7)))
	if s.pages.asked != 17 {
		t.Errorf("a SEND to 16 pages asked for %d", s.pages.asked)
	}
}

// TestODPReadResponseWaits: an answer that is under way waits for a page, and all behind
// it. Its repetition by the peer changes nothing of that.
func TestODPReadResponseWaits(t *testing.T) {
	s := pagedScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 1024, 1024))
	s.Expect(roctest.Opcode(wire.RCReadRespFirst), roctest.Payload(s.buf[1024:1280]))
	s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(4), 0, 1, []byte{1})) // its ACK is behind
	for i, wait := range []roce.Time{20, 40, 80, 160, 320, 640, 1000, 1000} {
		s.miss(1280, 2)
		s.ExpectNothing()
		s.ExpectDeadline(wait * roce.Microsecond)
		if i == 3 {
			s.Recv(s.readRequest(s.it(1), 1280, 768)) // the peer's timer
			s.ExpectNothing()
		}
		s.Advance(wait*roce.Microsecond - 1)
		s.ExpectNothing()
		s.Advance(1)
	}
	s.miss(1280, 0)
	s.Expect(roctest.Opcode(wire.RCReadRespFirst), roctest.PSN(s.it(1)))
	s.Expect(roctest.Opcode(wire.RCReadRespMiddle), roctest.PSN(s.it(2)))
	s.Expect(roctest.Opcode(wire.RCReadRespLast), roctest.PSN(s.it(3)),
		roctest.Payload(s.buf[1792:2048]))
	s.Expect(roctest.Opcode(wire.RCAck), roctest.PSN(s.it(4)))
	s.ExpectNothing()
	s.ExpectDeadline(0)
	s.ExpectCount(counter.PageStalls, 8)
}

// TestODPReadOfVanishedMemory: memory that goes away under an answer is an access
// error.
func TestODPReadOfVanishedMemory(t *testing.T) {
	s := pagedScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 1024, 1024))
	s.Expect(roctest.Opcode(wire.RCReadRespFirst))
	s.miss(1280, 2)
	s.ExpectNothing()
	s.pages.gone[1280/fakePage] = true
	s.Advance(20 * roce.Microsecond)
	s.ExpectAck(s.it(1), wire.NAKRemoteAccessError, 1)
	s.ExpectState(roce.StateErr)
}

// TestODPUnreliableDropsAtAbsentPage: UC and UD drop what meets an absent page, and
// keep the receive.
func TestODPUnreliableDropsAtAbsentPage(t *testing.T) {
	uc := pagedScript(t, options{Type: roce.TypeUC})
	uc.miss(pagedRecv+256, 2)
	uc.Recv(uc.uc(wire.RCSendFirst, 0), uc.uc(wire.RCSendLast, 1))
	uc.miss(0, 2)
	uc.Recv(uc.uc(wire.RCWriteOnly, 2))
	uc.ExpectCount(counter.DropPageAbsent, 2)
	uc.ExpectNoCQE()
	uc.ExpectNothing()
	uc.miss(pagedRecv+256, 0)
	uc.Recv(uc.uc(wire.RCSendFirst, 3), uc.uc(wire.RCSendLast, 4))
	uc.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 260})

	ud := pagedScript(t, options{Type: roce.TypeUD})
	in := datagram(wire.UDSendOnly, testQKey, make([]byte, 500))
	ud.miss(pagedRecv+512, 2)
	ud.Recv(in)
	ud.ExpectCount(counter.DropPageAbsent, 1)
	ud.ExpectNoCQE()
	ud.miss(pagedRecv+512, 0)
	ud.Recv(in)
	if wc := drain(t, ud.recv); len(wc) != 1 || wc[0].WRID != 1 || wc[0].ByteLen != 540 {
		t.Errorf("completions %+v", wc)
	}
	ud.PostRecv(2, pagedRecv, 4096)
	ud.pages.gone[pagedRecv/fakePage] = true
	ud.Recv(in)
	ud.ExpectRecvCQE(failed(2, roce.StatusLocProtErr))

	raw := pagedScript(t, options{Type: roce.TypeRawPacket})
	raw.miss(pagedRecv, 2)
	must(t, raw.qp.HandleFrame(0, make([]byte, 60), make([]byte, 8)))
	raw.ExpectCount(counter.DropPageAbsent, 1)
	raw.miss(pagedRecv, 0)
	must(t, raw.qp.HandleFrame(0, make([]byte, 60), make([]byte, 8)))
	raw.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 68})
}

// TestODPReadWaitsAnew: the pages of a READ that come are no reason to wait longer for the next,
// nor to have the peer wait longer that meets an absent page behind it.
func TestODPReadWaitsAnew(t *testing.T) {
	s := pagedScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 1024, 2048))
	s.Expect(roctest.Opcode(wire.RCReadRespFirst))
	for i := range 7 {
		s.miss(1280+256*i, 2)
		s.ExpectNothing()
		s.ExpectDeadline(20 * roce.Microsecond)
		s.miss(1280+256*i, 0)
		s.Advance(20 * roce.Microsecond)
		s.Expect(roctest.PSN(s.it(uint32(1 + i))))
	}
	s.miss(pagedRecv, 2)
	s.Recv(request(wire.RCSendOnly, s.it(8), make([]byte, 200)))
	s.Expect(roctest.Syndrome(wire.RNRSyndrome(7)))
}
