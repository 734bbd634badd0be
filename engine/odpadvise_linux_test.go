package engine_test

import (
	"errors"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/pager"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
)

// TestODPCapabilitiesHold: what the capabilities say is what works, and what they leave out
// there is not.
func TestODPCapabilitiesHold(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	caps := w.devs[0].ODPCaps()
	if caps.General != engine.ODPSupport|engine.ODPImplicit {
		t.Errorf("general capabilities %#x", caps.General)
	}
	for _, tt := range []struct {
		typ  roce.QPType
		ops  map[engine.ODPOps]roce.Opcode // by the capability that lists it
		srq  bool
		recv bool
	}{
		{roce.TypeRC, map[engine.ODPOps]roce.Opcode{
			engine.ODPSend: roce.OpSend, engine.ODPWrite: roce.OpWrite, engine.ODPRead: roce.OpRead,
			engine.ODPAtomic: roce.OpFetchAdd, engine.ODPFlush: roce.OpFlush,
			engine.ODPAtomicWrite: roce.OpAtomicWrite,
		}, true, true},
		{roce.TypeUC, map[engine.ODPOps]roce.Opcode{
			engine.ODPSend: roce.OpSend, engine.ODPWrite: roce.OpWrite,
		}, true, true},
		{roce.TypeUD, map[engine.ODPOps]roce.Opcode{engine.ODPSend: roce.OpSend}, true, true},
		{roce.TypeXRCSend, map[engine.ODPOps]roce.Opcode{
			engine.ODPSend: roce.OpSend, engine.ODPWrite: roce.OpWrite, engine.ODPRead: roce.OpRead,
			engine.ODPAtomic: roce.OpFetchAdd,
		}, true, false},
		{roce.TypeRawPacket, nil, false, false},
	} {
		want := engine.ODPOps(0)
		for bit := range tt.ops {
			want |= bit
		}
		if tt.typ != roce.TypeUD && tt.typ != roce.TypeRawPacket {
			odpOperations(t, w, tt.typ, tt.ops)
		}
		if tt.srq {
			want |= engine.ODPSRQRecv
		}
		if tt.recv {
			want |= engine.ODPRecv
		}
		if got := caps.Of(tt.typ); got != want {
			t.Errorf("%s: %#x, want %#x", tt.typ, got, want)
		}
	}
}

// odpOperations wants a type of QP to take these operations, and no others that there are
// capabilities for.
func odpOperations(
	t *testing.T, w *world, typ roce.QPType, ops map[engine.ODPOps]roce.Opcode,
) {
	t.Helper()
	s := seatOn(t, w.devs[0], engine.QPInit{Type: typ})
	must(t, s.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState))
	for bit, op := range map[engine.ODPOps]roce.Opcode{
		engine.ODPSend: roce.OpSend, engine.ODPWrite: roce.OpWrite, engine.ODPRead: roce.OpRead,
		engine.ODPAtomic: roce.OpFetchAdd, engine.ODPFlush: roce.OpFlush,
		engine.ODPAtomicWrite: roce.OpAtomicWrite,
	} {
		wr := roce.SendWR{Opcode: op, SGList: []roce.SGE{s.mr.SGE(0, 8)}}
		if op == roce.OpFlush {
			wr.SGList, wr.Flush = nil, wire.FlushGlobal
		}
		err := s.qp.PostSend(&wr)
		if _, has := ops[bit]; has != (err == nil) {
			t.Errorf("%s: %s gives %v", typ, op, err)
		}
	}
}

// TestODPUCLosesMessageAtAbsentPage: a UC message that meets an absent page is lost, and the
// page comes; the next one arrives.
func TestODPUCLosesMessageAtAbsentPage(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	uc := engine.QPInit{Type: roce.TypeUC}
	a, b := seatOn(t, w.devs[0], uc), seatOn(t, w.devs[1], uc)
	join(t, a, b, engine.ConnectOptions{})
	memory := odpMap(t, 2, nil)
	var err error
	b.mr, err = b.dev.RegODP(b.pd, memory, rights)
	must(t, err)
	a.mr.Bytes()[0] = 3
	a.send(t, writeTo(a, b, roce.OpWrite, 100))
	w.succeed(a.cq, 1)
	w.idle()
	if n := counterOf(t, b.dev, "drop_page_absent"); n != 1 {
		t.Errorf("%d packets dropped for want of a page, want 1", n)
	}
	must(t, b.mr.Advise(0, 100, engine.AdvicePrefetchWrite, engine.AdviseFlush))
	a.send(t, writeTo(a, b, roce.OpWrite, 100))
	w.succeed(a.cq, 1)
	w.idle()
	if memory[0] != 3 {
		t.Errorf("memory holds %d, want 3", memory[0])
	}
}

// TestAdviseBringsPagesIn: advice brings pages in, so that nothing faults afterwards; in
// the background too, and NO_FAULT does not.
func TestAdviseBringsPagesIn(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	const pages = 100
	memory := odpMap(t, 2*pages, nil)
	a, b := odpPair(t, w, memory)
	half := uint64(pages * odpPage)
	must(t, b.mr.Advise(0, 2*half, engine.AdvicePrefetchNoFault, engine.AdviseFlush))
	if s := odpStats(t, b); s.PagePrefetch != 0 {
		t.Errorf("NO_FAULT brought in %d pages", s.PagePrefetch)
	}
	must(t, b.mr.Advise(0, half, engine.AdvicePrefetchWrite, engine.AdviseFlush))
	must(t, b.mr.Advise(half, half, engine.AdvicePrefetch, 0))
	for odpStats(t, b).PagePrefetch < 2*pages {
		w.devs[1].Progress()
	}
	for i := range 2 * pages {
		a.send(t, roce.SendWR{
			Opcode: roce.OpWrite, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 8)},
			RemoteAddr: b.mr.Addr() + uint64(i*odpPage), RKey: b.mr.RKey(),
		})
		w.succeed(a.cq, 1)
	}
	if s := odpStats(t, b); s != (pager.Stats{PagePrefetch: 2 * pages}) {
		t.Errorf("statistics are %+v", s)
	}
	must(t, b.mr.Advise(0, 2*half, engine.AdvicePrefetchNoFault, 0))
	if s := odpStats(t, b); s.PagePrefetch != 4*pages {
		t.Errorf("NO_FAULT made %d pages known, want %d", s.PagePrefetch-2*pages, 2*pages)
	}
}

// TestAdviseErrors has the error of each kind of bad advice.
func TestAdviseErrors(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	memory := odpMap(t, 2, nil)
	_, s := odpPair(t, w, memory)
	constant, err := s.dev.RegODP(s.pd, memory, mem.RemoteRead)
	must(t, err)
	pinned, err := s.dev.RegMR(s.pd, make([]byte, 10), rights)
	must(t, err)
	hole, err := s.dev.RegODPMemory(s.pd, engine.ODPMemory{Start: 0x1000, Length: 0x1000}, rights)
	must(t, err)
	other := s.dev.AllocPD()
	good, n := s.mr.SGE(0, 8), uint64(len(memory))
	gone := hole.SGE(0, 8)
	forged := roce.SGE{Addr: good.Addr, LKey: good.LKey ^ 1}
	const read, write, flush = engine.AdvicePrefetch, engine.AdvicePrefetchWrite, engine.AdviseFlush
	for name, tt := range map[string]struct {
		pd     *engine.PD
		advice engine.Advice
		flags  engine.AdviseFlags
		sge    roce.SGE
		want   error
	}{
		"good":             {s.pd, write, flush, good, nil},
		"unknown advice":   {s.pd, 3, 0, good, unix.ENOTSUP},
		"unknown flag":     {s.pd, read, 2, good, unix.EINVAL},
		"no PD":            {nil, read, 0, good, unix.EINVAL},
		"PD of another":    {w.devs[0].AllocPD(), read, 0, good, unix.EINVAL},
		"other PD":         {other, read, 0, good, unix.EINVAL},
		"no such key":      {s.pd, read, 0, forged, unix.EFAULT},
		"out of range":     {s.pd, read, 0, s.mr.SGE(int(n)-4, 8), unix.EFAULT},
		"not mapped":       {s.pd, read, flush, gone, unix.EFAULT},
		"not mapped, lost": {s.pd, read, 0, gone, nil},
		"not mapped, map":  {s.pd, engine.AdvicePrefetchNoFault, flush, gone, unix.EFAULT},
		"pinned":           {s.pd, read, 0, pinned.SGE(0, 8), unix.ENOENT},
		"constant":         {s.pd, write, 0, constant.SGE(0, 8), unix.EPERM},
		"constant, read":   {s.pd, read, flush, constant.SGE(0, 8), nil},
	} {
		err := s.dev.AdviseMR(tt.pd, tt.advice, tt.flags, []roce.SGE{good, tt.sge})
		var refused *engine.AdviseError
		if !errors.Is(err, tt.want) || (tt.want != nil) != errors.As(err, &refused) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if err := s.mr.Advise(n, 1, read, 0); !errors.Is(err, unix.EFAULT) {
		t.Errorf("behind the end: %v", err)
	}
	must(t, s.mr.Deregister())
	if err := s.mr.Advise(0, 1, read, 0); !errors.Is(err, unix.EFAULT) {
		t.Errorf("after Deregister: %v", err)
	}
}

// TestODPCountsPagesThatGoAway: pages that go away under traffic are noticed and brought
// in again, and the counters say so, each by the kernel's name.
func TestODPCountsPagesThatGoAway(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	const pages = 8
	memory := odpMap(t, pages, nil)
	a, b := odpPair(t, w, memory)
	for round := range byte(5) {
		a.mr.Bytes()[0] = round
		a.send(t, writeTo(a, b, roce.OpWrite, pages*odpPage))
		w.succeed(a.cq, 1)
		if memory[0] != round {
			t.Fatalf("memory holds %d, want %d", memory[0], round)
		}
		must(t, unix.Madvise(memory, unix.MADV_DONTNEED))
		// What a look saw holds for a while.
		w.clock.AdvanceTo(w.clock.Now() + 200*roce.Microsecond)
	}
	// Those who look from outside see the same.
	rows := b.dev.Resources(9).MRs
	if len(rows) != 2 || rows[0].ODP != nil || rows[1].ODP == nil ||
		rows[1].ODP.PageFaults == 0 || rows[1].ODP.PageFaultWait <= 0 {
		t.Errorf("regions %+v", rows)
	}
	must(t, b.mr.Deregister())
	s := odpStats(t, b)
	// A worker that is late with a request of the round before may bring pages in anew
	// before anybody saw that they were gone, and after the last round too.
	if s.PageFaults < 2*pages || s.PageFaults > 10*pages || s.PageFaultsHandled < 2 ||
		s.PageInvalidations < pages || s.PageInvalidations > 4*pages ||
		s.PageInvalidationsHandled < 1 {
		t.Errorf("statistics are %+v", s)
	}
	for name, want := range map[string]uint64{
		"page_faults": s.PageFaults, "page_faults_handled": s.PageFaultsHandled,
		"page_invalidations":         s.PageInvalidations,
		"page_invalidations_handled": s.PageInvalidationsHandled, "page_prefetch": s.PagePrefetch,
		"page_fault_wait_ns": uint64(s.PageFaultWait),
	} {
		if got := counterOf(t, b.dev, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	for _, d := range []*engine.Device{a.dev, b.dev} {
		for _, row := range d.Resources(9).MRs {
			if row.ODP != nil {
				t.Errorf("a region that is not paged, or gone, has statistics %+v", row.ODP)
			}
		}
	}
	if pinned, ok := a.mr.ODPStats(); ok {
		t.Errorf("a region without paging has statistics %+v", pinned)
	}
}

// TestODPMemoryTakenAwayUnderTraffic takes memory away in every way while peers write to it
// and read it, with the background loop. Connections end with an access error or succeed;
// nothing crashes and nothing hangs.
func TestODPMemoryTakenAwayUnderTraffic(t *testing.T) {
	var devs [2]*engine.Device
	t.Run("sim", func(t *testing.T) {
		clock := engine.NewSystemClock()
		network := newNetwork(t, 1, clock, sim.Faults{})
		devs[0], devs[1] = simPair(t, network, engine.Options{Clock: clock})
		odpHostile(t, devs)
	})
	t.Run("veth", func(t *testing.T) {
		_, devs = vethPair(t, vethpair.Options{MTU: 4200}, [2]engine.Options{})
		odpHostile(t, devs)
	})
}

func odpHostile(t *testing.T, devs [2]*engine.Device) {
	const pages, rounds = 16, 40
	f := odpFile(t, pages)
	memory := odpMap(t, pages, f)
	stop := make(chan struct{})
	var owner sync.WaitGroup
	owner.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			switch i % 6 {
			case 0:
				err = f.Truncate(int64((i / 6 % pages) * odpPage))
			case 1:
				err = f.Truncate(int64(pages * odpPage))
			case 2:
				err = unix.Madvise(memory, unix.MADV_DONTNEED)
			case 3:
				err = unix.Mprotect(memory, unix.PROT_READ)
			case 4:
				err = unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE)
			default:
				err = unix.Mprotect(memory[len(memory)/2:], unix.PROT_NONE)
			}
			if err != nil {
				t.Error(err)
				return
			}
			must(t, unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE))
		}
	})
	good, bad := 0, 0
	for i := range rounds {
		a, b := newSide(t, devs[0]), newSide(t, devs[1])
		connect(t, a, b)
		mr, err := b.dev.RegODP(b.pd, memory, allAccess)
		must(t, err)
		op := []roce.Opcode{roce.OpWrite, roce.OpRead}[i%2]
		must(t, a.qp.PostSend(&roce.SendWR{
			Opcode: op, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, len(memory))},
			RemoteAddr: mr.Addr(), RKey: mr.RKey(),
		}))
		var wc [1]roce.Completion
		for n := 0; n == 0; {
			n, err = a.cq.Wait(t.Context(), wc[:])
			must(t, err)
		}
		switch wc[0].Status {
		case roce.StatusSuccess:
			good++
		case roce.StatusRemAccessErr:
			bad++
		default:
			t.Errorf("%s ends with %s", op, wc[0].Status)
		}
		a.qp.Close()
		b.qp.Close()
		must(t, mr.Deregister())
	}
	close(stop)
	owner.Wait()
	t.Logf("%d of %d succeeded, %d were refused", good, rounds, bad)
}

// TestAdviseWhileReregistered: advice may be given while the region changes. It is then
// about the region as it was or as it is, or refused; the race detector sees no third.
func TestAdviseWhileReregistered(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	dev := w.devs[0]
	pds := []*engine.PD{dev.AllocPD(), dev.AllocPD()}
	memory := odpMap(t, 2, nil)
	mr, err := dev.RegODP(pds[0], memory, rights)
	must(t, err)
	stop := make(chan struct{})
	var owner sync.WaitGroup
	owner.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			access := rights | mem.OnDemand
			if i%3 == 0 {
				access |= mem.ZeroBased
			}
			if err := mr.Rereg(mem.ChangePD|mem.ChangeAccess, nil, pds[i%2], access); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 2000 {
		err := mr.Advise(uint64(i%2*odpPage), 1, engine.Advice(i%3), engine.AdviseFlush)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EFAULT) {
			t.Error(err)
		}
	}
	close(stop)
	owner.Wait()
	must(t, mr.Deregister())
}
