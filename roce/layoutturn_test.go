package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// Memory of very many elements is looked at in turns, each of which is bounded: the queue
// serves others too. These tests count the elements.

// turn is at how many elements one turn of a QP may look: at 1024 ahead of what it does, and
// twice at those of a packet, which is looked at and then copied.
const turn = 1024 + 2*256

// bytesApart is a key for every second byte of a region with pages.
func (s *script) bytesApart(count int) (*mem.Region, roce.SGE) {
	s.t.Helper()
	r := s.laid(s.column(0, 1, 2, count), layoutRights)
	return r, roce.SGE{LKey: r.LKey(), Length: uint32(count)}
}

// expectTurn says that one turn looked at elements, and not at more than it may.
func (s *script) expectTurn(what string) {
	s.t.Helper()
	if n := s.pages.looks; n == 0 || n > turn {
		s.t.Errorf("%s: looked at %d elements, want 1 to %d", what, n, turn)
	}
	s.pages.looks = 0
}

// TestLayoutReadIsLookedAtInTurns: neither a READ of a layout nor the wait for one of its
// pages looks at all of it at once.
func TestLayoutReadIsLookedAtInTurns(t *testing.T) {
	s := pagedScript(t, options{})
	const n = 16 << 10
	_, piece := s.bytesApart(n)
	want := make([]byte, n)
	for i := range want {
		s.buf[2*i] = byte(i * i >> 3)
		want[i] = s.buf[2*i]
	}
	s.Recv(roctest.Packet{
		Opcode: wire.RCReadRequest, PSN: s.it(0), AckReq: true,
		RETH: wire.RETH{VA: piece.Addr, RKey: piece.LKey, DMALen: n},
	})
	s.expectTurn("the request")
	const absent = 40 * 256 // bytes into what is read
	s.miss(2*absent, 3)
	waits := 0
	for i := 0; i < n; i += 256 {
		if i == absent {
			for s.pages.misses[2*absent/fakePage] > 0 {
				s.ExpectNothing()
				s.expectTurn("the wait")
				at, _ := s.qp.NextDeadline()
				s.Advance(at - s.now)
				waits++
			}
		}
		s.Expect(roctest.PSN(s.it(uint32(i/256))), roctest.Payload(want[i:][:256]))
		s.expectTurn("a response")
	}
	if waits == 0 {
		t.Error("no page was absent")
	}
}

// TestLayoutResultIsLookedAtInTurns: a READ into a layout goes when all of that is present,
// after as many turns as it takes to see that.
func TestLayoutResultIsLookedAtInTurns(t *testing.T) {
	s := pagedScript(t, options{})
	const n = 16 << 10
	_, piece := s.bytesApart(n)
	s.Post(roce.SendWR{
		WRID: 1, Opcode: roce.OpRead, RemoteAddr: 0x5000, RKey: 9,
		SGList: []roce.SGE{s.sge(1, 3)[0], piece},
	})
	s.miss(2*5000, 1)
	turns := 0
	for frame := make([]byte, 4096); s.qp.NextPacket(s.now, frame) == 0; turns++ {
		s.expectTurn("a turn")
		at, ok := s.qp.NextDeadline()
		if !ok || turns > 2*n/1024 {
			t.Fatalf("no READ after %d turns", turns)
		}
		s.Advance(at - s.now)
	}
	s.expectTurn("the last turn")
	if turns < n/1024 {
		t.Errorf("%d elements were looked at in %d turns", n, turns)
	}
	s.ExpectCount(counter.PageStalls, 1)
	s.ExpectNothing()
	if s.pages.looks != 0 {
		t.Error("looked at a result again")
	}
}

// TestLayoutResultKeyGoes: what was looked at in earlier turns is checked again.
func TestLayoutResultKeyGoes(t *testing.T) {
	s := pagedScript(t, options{})
	key, piece := s.bytesApart(16 << 10)
	s.Post(roce.SendWR{
		WRID: 1, Opcode: roce.OpRead, RemoteAddr: 0x5000, RKey: 9, SGList: []roce.SGE{piece},
	})
	s.ExpectNothing()
	at, _ := s.qp.NextDeadline()
	must(t, s.keys.ReregisterLayout(key, mem.ChangeTranslation, s.column(0, 1, 2, 8), nil, 0))
	s.Advance(at - s.now)
	s.ExpectNothing()
	s.ExpectCQE(failed(1, roce.StatusLocProtErr))
}
