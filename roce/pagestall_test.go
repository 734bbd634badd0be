package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestODPSendWaitsForPage: a send queue waits for a page of the work request, ever longer,
// and goes on where it was; what is under way stays under way.
func TestODPSendWaitsForPage(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC} {
		for at := range 3 {
			s := pagedScript(t, options{Type: typ})
			s.Send(1, 3*256)
			for i := range at {
				s.Expect(roctest.PSN(s.us(uint32(i))))
			}
			for round, wait := range []roce.Time{20, 40, 80} {
				s.miss(256*at, 1)
				for i := at + 1; i < 3; i++ {
					s.miss(256*i, 1) // asked for together
				}
				if typ == roce.TypeRC && at > 0 && round == 0 {
					// Nothing that was sent has asked for an ACK.
					s.Expect(roctest.PSN(s.us(uint32(at-1))), roctest.AckReq(true))
				}
				s.ExpectNothing()
				s.ExpectNothing()
				s.ExpectDeadline(wait * roce.Microsecond)
				s.Advance(wait * roce.Microsecond)
			}
			for i := at; i < 3; i++ {
				s.miss(256*i, 0)
			}
			for i := at; i < 3; i++ {
				s.Expect(roctest.PSN(s.us(uint32(i))), roctest.Payload(s.buf[256*i:][:256]))
			}
			s.ExpectCount(counter.PageStalls, 3)
			if typ == roce.TypeRC {
				s.Recv(ack(s.us(2)))
			}
			s.ExpectCQE(done(1, roce.WCSend))
			s.ExpectDeadline(0)
		}
	}
}

// TestODPDatagramWaitsForPage is the same for a datagram.
func TestODPDatagramWaitsForPage(t *testing.T) {
	s := pagedScript(t, options{Type: roce.TypeUD})
	s.Post(s.gram(1, 700, 0x55))
	s.miss(512, 2)
	s.ExpectNothing()
	s.ExpectNoCQE()
	s.Advance(20 * roce.Microsecond)
	s.Expect(roctest.PSN(s.us(0)), roctest.Payload(s.buf[:700]))
	s.ExpectCQE(done(1, roce.WCSend))
}

// TestODPSendOfUnmappedMemory: a work request whose memory does not exist ends with a
// local protection error.
func TestODPSendOfUnmappedMemory(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC} {
		s := pagedScript(t, options{Type: typ})
		s.Send(1, 512)
		s.Expect(roctest.PSN(s.us(0)))
		s.miss(256, 2)
		if typ == roce.TypeRC {
			s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(true))
		}
		s.ExpectNothing()
		s.pages.gone[1] = true
		s.Advance(20 * roce.Microsecond)
		s.ExpectNothing()
		if typ == roce.TypeRC {
			s.Recv(ack(s.us(0)))
		}
		s.ExpectCQE(failed(1, roce.StatusLocProtErr))
	}
}

// TestODPWaitKeepsRetryTimer: the timer of what was sent runs while the queue waits,
// but what cannot be sent again for want of a page costs no retry.
func TestODPWaitKeepsRetryTimer(t *testing.T) {
	s := pagedScript(t, options{Timeout: 2}) // 16.4 us
	s.Send(1, 512)
	s.Expect(roctest.PSN(s.us(0)))
	s.miss(256, 2)
	s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(true))
	s.ExpectNothing()
	s.ExpectDeadline(16384)
	s.miss(0, 100)
	s.Advance(16384) // time-out: from the start again, which is absent by now
	s.Advance(4 * roce.Microsecond)
	for range 20 {
		s.miss(0, 100)
		s.ExpectNothing()
		s.Advance(roce.Millisecond)
	}
	if left := s.qp.Snapshot().RetryLeft; left != 2 {
		t.Errorf("%d retries left, want 2", left)
	}
	s.miss(0, 0)
	s.Expect(roctest.PSN(s.us(0)))
}

// TestODPReadNeedsItsResultPage: a READ is not sent before its result can be
// written.
func TestODPReadNeedsItsResultPage(t *testing.T) {
	s := pagedScript(t, options{})
	s.Read(1, 1024)
	s.miss(768, 1)
	s.miss(512, 1)
	s.ExpectNothing()
	s.ExpectDeadline(20 * roce.Microsecond)
	s.Advance(20 * roce.Microsecond)
	s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(0)))
	s = pagedScript(t, options{})
	s.pages.gone[3] = true
	s.Read(1, 1024)
	s.ExpectNothing()
	s.ExpectCQE(failed(1, roce.StatusLocProtErr))
}

// TestODPReadResultPageLeaves: an answer that finds the page of its result gone is
// dropped, and asked for again after a wait. What comes meanwhile costs no retry.
func TestODPReadResultPageLeaves(t *testing.T) {
	for _, ext := range []roce.Extensions{0, roce.ExtSelectiveRepeat, roce.ExtReorderWindow} {
		s := pagedScript(t, options{Ext: ext, RetryCnt: 1})
		data := make([]byte, 3*s.mtu()+10)
		fill(data, 42)
		s.Read(1, len(data))
		s.Expect(roctest.Opcode(wire.RCReadRequest))
		s.Recv(s.part(data, 0))
		for round := range 3 {
			s.miss(256, 2)
			s.Recv(s.partAs(wire.RCReadRespMiddle, data, 1))
			s.Recv(s.part(data, 2), s.part(data, 3))
			s.ExpectNothing()
			s.ExpectDeadline(20 * roce.Microsecond << round)
			s.Advance(20 * roce.Microsecond << round)
			s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(1)))
			s.ExpectNothing()
		}
		if left := s.qp.Snapshot().RetryLeft; left != 1 {
			t.Errorf("%s: %d retries left, want 1", ext, left)
		}
		s.Recv(s.partAs(wire.RCReadRespFirst, data, 1))
		if ext == 0 {
			s.Recv(s.part(data, 2), s.part(data, 3))
		}
		s.readDone(data)
		s.ExpectCount(counter.DropPageAbsent, 3)
	}
}

// TestODPAtomicResultPageLeaves is the same for an atomic: the peer repeats its answer,
// and does not add twice.
func TestODPAtomicResultPageLeaves(t *testing.T) {
	s := pagedScript(t, options{})
	s.Post(roce.SendWR{
		WRID: 1, Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8), RemoteAddr: 0x1000, RKey: 7,
	})
	s.Expect(roctest.Opcode(wire.RCFetchAdd), roctest.PSN(s.us(0)))
	s.miss(0, 2)
	s.Recv(atomicAck(s.us(0), 99))
	s.ExpectNothing()
	s.ExpectNoCQE()
	s.Advance(20 * roce.Microsecond)
	s.Expect(roctest.Opcode(wire.RCFetchAdd), roctest.PSN(s.us(0)))
	s.Recv(atomicAck(s.us(0), 99))
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCFetchAdd, ByteLen: 8})
	s.ExpectWord(0, 99)
	// A result that does not exist any more ends the QP.
	s.Post(roce.SendWR{
		WRID: 2, Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8), RemoteAddr: 0x1000, RKey: 7,
	})
	s.Expect(roctest.Opcode(wire.RCFetchAdd))
	s.pages.gone[0] = true
	s.Recv(atomicAck(s.us(1), 99))
	s.ExpectCQE(failed(2, roce.StatusLocProtErr))
}

// TestODPSim is the simulation with memory whose pages leave at any time, on top of all
// other faults: data is the same, atomics are executed once, and all of it ends.
func TestODPSim(t *testing.T) {
	if *simSeed != 0 {
		newSim(t, *simSeed, true).run()
		return
	}
	n := *simSeeds / 2
	if testing.Short() {
		n /= 10
	}
	broken, stalls, rnr := 0, uint64(0), uint64(0)
	for seed := uint64(1); seed <= uint64(n) && !t.Failed(); seed++ {
		s := newSim(t, seed, true)
		s.run()
		broken += s.broken
		for _, e := range s.ends {
			stalls += e.count[counter.PageStalls]
			rnr += e.count[counter.PageRNR]
		}
	}
	if broken > n/10 {
		t.Errorf("%d of %d connections used up their retries", broken, n)
	}
	if stalls == 0 || rnr == 0 {
		t.Errorf("%d stalls, %d RNR NAKs: no page was absent", stalls, rnr)
	}
}

// TestODPWaitAllocatesNothing: waiting for pages allocates nothing.
func TestODPWaitAllocatesNothing(t *testing.T) {
	for _, op := range []roce.Opcode{
		roce.OpSend, roce.OpWrite, roce.OpRead, roce.OpFetchAdd, roce.OpAtomicWrite,
	} {
		n := 3*defaults.MTU.Bytes() + 1
		if op == roce.OpFetchAdd || op == roce.OpAtomicWrite {
			n = 8
		}
		l := newLoad(t, op, n, options{
			Paged: true, RetryCnt: 7, RNRRetry: 7, Rights: atomicRights,
		})
		for _, e := range l.p.ends {
			next := 0
			e.pages.leave = func() int {
				if next++; next%37 == 5 {
					return 2
				}
				return 0
			}
		}
		if got := l.allocations(); got != 0 {
			t.Errorf("%s: %v allocations", op, got)
		}
		if l.p.ends[0].count[counter.PageStalls]+l.p.ends[0].count[counter.PageRNR] == 0 {
			t.Errorf("%s: no page was absent", op)
		}
	}
}

// TestODPNeedsPager: paging needs a pager, and what has one is paged.
func TestODPNeedsPager(t *testing.T) {
	e := newEndpoint(t, 1, options{Paged: true}.filled())
	for _, tt := range []struct {
		m      mem.Memory
		access mem.Access
		ok     bool
	}{
		{mem.Memory{Pager: e.pages, Length: 1 << 40}, mem.OnDemand, true},
		{mem.Memory{Pager: e.pages, Length: ^uint64(0)}, mem.OnDemand, true}, // implicit
		{mem.Memory{Pager: e.pages, Length: 1}, 0, false},
		{mem.Memory{Bytes: e.buf}, mem.OnDemand, false},
		{mem.Memory{Pager: e.pages, Start: 2, Length: ^uint64(0) - 1}, mem.OnDemand, false},
	} {
		if _, err := e.keys.RegisterMemory(e.domain, tt.m, tt.access); (err == nil) != tt.ok {
			t.Errorf("%+v as %s: %v", tt.m, tt.access, err)
		}
	}
}
