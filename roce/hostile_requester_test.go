package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// requesterKinds are those whose requests are answered.
var requesterKinds = []kind{kinds[0], kinds[1], kinds[2], kinds[10]}

// TestFailedRepeatMeetsLateResponse: a request that cannot be sent again, because
// its memory is gone, is the oldest when an answer to a later one comes. The QP
// ends there, once: every request completes and no timer runs on.
func TestFailedRepeatMeetsLateResponse(t *testing.T) {
	for _, k := range requesterKinds {
		for _, failing := range []roce.Opcode{roce.OpAtomicWrite, roce.OpSend, roce.OpWrite} {
			for _, response := range []wire.Opcode{
				wire.RCReadRespOnly, wire.RCReadRespFirst, wire.RCAck, wire.RCAtomicAck,
			} {
				for _, psn := range []uint32{1, 2, 3} {
					lateResponse(t, k, failing, response, psn)
				}
			}
		}
	}
}

func lateResponse(t *testing.T, k kind, failing roce.Opcode, response wire.Opcode, psn uint32) {
	t.Helper()
	s := bareStand(t, k)
	s.moveUp(roce.StateRTS)
	for _, wr := range []roce.SendWR{
		s.request(roce.OpSend, areaLocal, 0, 8), s.request(failing, areaRevoke, 0, 8),
		s.request(roce.OpRead, areaLocal, 0, 8), s.request(roce.OpFetchAdd, areaLocal, 8, 8),
		s.request(roce.OpSend, areaLocal, 0, 8),
	} {
		s.post(&wr)
	}
	s.sendAll()
	s.keys.Deregister(s.areas[areaRevoke])
	s.tick()
	s.sendAll()
	op, _ := k.opcode(response)
	p := s.target(op)
	p.PSN = wire.PSN(0x100 + psn)
	if response == wire.RCReadRespOnly {
		p.Payload = make([]byte, 8)
	}
	s.givePacket(p)
	s.check()
	s.runOut()
	if s.sendDone != s.sendPosted {
		t.Fatalf("%s: %d of %d requests completed: %+v", k.name, s.sendDone, s.sendPosted,
			s.qp.Snapshot())
	}
	s.end()
}

// TestKeptResponseMeetsFailedRepeat: the same when the answer to the failing request
// itself had come early and waits.
func TestKeptResponseMeetsFailedRepeat(t *testing.T) {
	for _, k := range requesterKinds {
		s := bareStand(t, k)
		s.moveUp(roce.StateRTS)
		for _, wr := range []roce.SendWR{
			s.request(roce.OpRead, areaLocal, 0, 8),
			s.request(roce.OpAtomicWrite, areaRevoke, 0, 8),
			s.request(roce.OpSend, areaLocal, 0, 8),
		} {
			s.post(&wr)
		}
		s.sendAll()
		op, _ := k.opcode(wire.RCReadRespOnly)
		early := s.target(op)
		early.PSN, early.Payload = 0x101, nil
		s.givePacket(early)
		s.keys.Deregister(s.areas[areaRevoke])
		s.tick()
		s.sendAll()
		awaited := s.target(op)
		awaited.PSN, awaited.Payload = 0x100, make([]byte, 8)
		s.givePacket(awaited)
		s.check()
		s.runOut()
		if s.sendDone != s.sendPosted {
			t.Fatalf("%s: %d of %d requests completed", k.name, s.sendDone, s.sendPosted)
		}
		s.end()
	}
}

// TestEarlyResponseIsNotRequested: part of a READ came, what is before it was lost
// twice, and the timer expires: the hole is asked for and nothing else, and the
// send queue comes to rest.
func TestEarlyResponseIsNotRequested(t *testing.T) {
	for _, k := range []kind{kinds[1], kinds[2]} {
		s := bareStand(t, k)
		s.moveUp(roce.StateRTS)
		wr := s.request(roce.OpRead, areaLocal, 0, 4*256)
		s.post(&wr)
		wr = s.request(roce.OpSend, areaLocal, 0, 8)
		s.post(&wr)
		s.sendAll()
		for _, psn := range []wire.PSN{0x101, 0x102} {
			p := s.target(wire.RCReadRespMiddle)
			p.PSN = psn
			s.givePacket(p)
		}
		s.sendAll()
		var sent []wire.Packet
		for s.qp.Snapshot().RetryLeft > 1 {
			s.tick()
			sent = s.sendAll()
		}
		asked := 0
		for i := range sent {
			if p := &sent[i]; p.Spec.Is(wire.ClassRead) {
				asked++
				if p.BTH.PSN != 0x100 && p.BTH.PSN != 0x103 || p.RETH().DMALen != 256 {
					t.Errorf("%s: asked for %s", k.name, roctest.Describe(p))
				}
			}
		}
		if asked == 0 {
			t.Errorf("%s: what is missing was not asked for", k.name)
		}
		s.runOut()
		s.end()
	}
}
