package roce_test

import (
	"encoding/binary"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// maxSteps bounds what one input of a fuzzer does.
const maxSteps = 300

// FuzzAnyQP gives a QP of any kind in any state any packets with a right ICRC,
// each with a length of two bytes before it, from the BTH on.
func FuzzAnyQP(f *testing.F) {
	f.Fuzz(func(t *testing.T, in, at byte, data []byte) {
		k, state := kinds[int(in)%len(kinds)], everyState[int(at)%len(everyState)]
		if !k.reaches(state) {
			t.Skip("no such state")
		}
		s := newStand(t, k, state)
		for steps := 0; len(data) > 2 && steps < maxSteps; steps++ {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2, 4500)
			s.give(data[2 : 2+n])
			data = data[2+n:]
			s.sendAll()
			s.check()
		}
		s.runOut()
		s.end()
	})
}

// FuzzInterleave lets posts, packets, timers, changes of attributes and of memory
// follow each other in any order, on a QP of any kind.
func FuzzInterleave(f *testing.F) {
	f.Fuzz(func(t *testing.T, in byte, data []byte) {
		s := newStand(t, kinds[int(in)%len(kinds)], roce.StateRTS)
		play := &tape{data}
		for steps := 0; len(play.data) > 0 && steps < maxSteps; steps++ {
			s.act(play)
			s.check()
		}
		if s.qp.Attr().RateLimit == 0 || s.qp.Attr().RateLimit > 1000 {
			s.runOut()
		}
		s.end()
	})
}

// act does one thing that a tape asks for.
func (s *stand) act(play *tape) {
	s.tb.Helper()
	switch play.IntN(16) {
	default: // packets are what there is most of
		s.giveFrame(s.noisy(play))
	case 0, 1:
		op := roce.Opcode(play.IntN(16))
		n := []int{8, 0, 1, 255, 256, 257, 600}[play.IntN(7)]
		wr := s.request(op, play.IntN(areaCount), 8*play.IntN(64), n)
		wr.Flags = roce.SendFlags(play.IntN(8))
		s.post(&wr)
	case 2:
		s.postRecv(play.IntN(areaCount), play.IntN(64), play.IntN(1000))
	case 3:
		s.sendSome(1 + play.IntN(4))
	case 4:
		s.sendAll()
	case 5:
		s.tick()
	case 6:
		s.now += roce.Time(play.IntN(1<<16)) * roce.Microsecond
		s.qp.HandleDeadline(s.now)
	case 7:
		a, bit := s.qp.Attr(), roce.AttrMask(1)<<play.IntN(31)
		extreme(&a, bit, play.IntN(extremes))
		_ = s.modify(&a, bit) // refused or not, the stand must hold
	case 8:
		_ = s.modify(&roce.Attr{State: everyState[play.IntN(7)]}, roce.AttrState)
		if s.qp.State() == roce.StateReset && play.IntN(2) == 0 {
			s.moveUp(roce.StateRTS)
		}
	case 9:
		s.revoke(play)
	}
}

// sendSome lets the QP send up to n packets.
func (s *stand) sendSome(n int) {
	for range n {
		s.qp.NextPacket(s.now, s.frame)
	}
}

// revoke takes a region away, and may bring it back under another key.
func (s *stand) revoke(play *tape) {
	s.tb.Helper()
	i := play.IntN(areaCount)
	switch play.IntN(3) {
	case 0:
		s.keys.Invalidate(s.own.Local(), s.areas[i].RKey())
	case 1:
		_ = s.keys.Validate(s.areas[i], uint8(play.next())) // it may be valid
	default:
		s.keys.Deregister(s.areas[i])
		if play.IntN(2) != 0 {
			return
		}
		domain := s.own
		if i == areaForeign {
			domain = s.other
		}
		var err error
		s.areas[i], err = s.keys.RegisterAt(domain, s.area(i), uint64(i+1)<<32, areaRights[i])
		must(s.tb, err)
	}
}

// FuzzRequester answers a requester that has work of all sorts, with any answers
// near those that it awaits, SELECTIVE_ACK among them. All its work must end.
func FuzzRequester(f *testing.F) {
	requesters := []kind{kinds[0], kinds[1], kinds[2], kinds[10]}
	f.Fuzz(func(t *testing.T, in byte, data []byte) {
		s := newStand(t, requesters[int(in)%len(requesters)], roce.StateRTS)
		play := &tape{data}
		for steps := 0; len(play.data) > 0 && steps < maxSteps; steps++ {
			switch play.IntN(10) {
			default:
				s.giveFrame(s.response(play))
			case 0:
				s.tick()
			case 1:
				wr := s.request(roce.Opcode(play.IntN(16)), areaOpen, 8*play.IntN(8),
					[]int{8, 600, 300, 0}[play.IntN(4)])
				s.post(&wr)
			case 2:
				s.sendAll()
			case 3:
				s.revoke(play)
			}
			s.check()
		}
		s.runOut()
		if s.sendDone != s.sendPosted {
			t.Fatalf("%d of %d requests completed", s.sendDone, s.sendPosted)
		}
		s.end()
	})
}

// answer is a frame with an answer that a tape asks for.
func (s *stand) response(play *tape) []byte {
	p := s.target(pick(play, responsesOf[s.kind.service()]))
	p.PSN = p.PSN.Add(uint32(play.IntN(20)) - 2)
	p.AETH.Syndrome = pick(play, []wire.Syndrome{
		wire.ACKNoCredits, wire.ACKNoCredits, wire.ACKNoCredits, 0x60, 0x21, 0, 3, 0x61, 0x40, 0xff,
	})
	p.AETH.MSN = uint32(play.IntN(16))
	switch p.Opcode.Spec().Payload {
	case wire.PayloadPartial, wire.PayloadAny:
		p.Payload = make([]byte, []int{88, 0, 256, 44, 1, 300}[play.IntN(6)])
	case wire.Payload32:
		for i := range p.Payload[:4] {
			p.Payload[i] = play.next()
		}
	}
	return p.Frame(&s.path)
}
