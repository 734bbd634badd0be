package engine_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/heap"
	"xroce/xsk/xsktest/timeout"
)

// A closer is an object that cannot be closed while others use it.
type closer interface{ Close() error }

// TestBusy closes each object too early, and again when its users are gone.
func TestBusy(t *testing.T) {
	dev := simWorld(t, 1, sim.Faults{}, engine.Options{}).devs[0]
	s := seatOn(t, dev, engine.QPInit{})
	domain := dev.OpenXRCD()
	srq := newSRQ(t, s, 1, engine.SRQInit{})
	channel := newChannel(t, dev)
	cq, err := dev.CreateCQ(8, engine.OnChannel(channel))
	if err != nil {
		t.Fatal(err)
	}
	xrcSRQ, err := dev.CreateSRQ(s.pd, engine.SRQInit{XRCD: domain, CQ: cq})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := dev.CreateQP(s.pd, engine.QPInit{SendCQ: s.cq, RecvCQ: cq, SRQ: srq})
	if err != nil {
		t.Fatal(err)
	}
	target, err := dev.CreateQP(s.pd, engine.QPInit{Type: roce.TypeXRCRecv, XRCD: domain})
	if err != nil {
		t.Fatal(err)
	}
	busy := func(what string, list ...closer) {
		t.Helper()
		for _, c := range list {
			if err := c.Close(); !errors.Is(err, engine.ErrBusy) {
				t.Errorf("%s: closing the %T: %v", what, c, err)
			}
		}
	}
	free := func(list ...closer) {
		t.Helper()
		for _, c := range list {
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Errorf("closing the %T: %v", c, err)
			}
		}
	}
	busy("everything is there", s.pd, s.cq, cq, srq, domain, channel)
	s.qp.Close()
	s.qp.Close()
	busy("a QP on an SRQ", s.pd, s.cq, cq, srq, domain, channel)
	shared.Close()
	busy("an SRQ for XRC", s.pd, cq, domain, channel)
	free(s.cq, srq, xrcSRQ)
	busy("a target of XRC", s.pd, domain, channel)
	target.Close()
	free(domain, cq, channel)
	busy("a region", s.pd)
	s.mr.Deregister()
	s.mr.Deregister()
	free(s.pd)
}

// TestNothingOfClosed is made of objects that are closed, or of another device,
// and what fails leaves no user behind.
func TestNothingOfClosed(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	s := seatOn(t, w.devs[0], engine.QPInit{})
	other := seatOn(t, w.devs[1], engine.QPInit{})
	otherSRQ := newSRQ(t, other, 0, engine.SRQInit{})
	dev, domain := w.devs[0], w.devs[0].OpenXRCD()
	closedPD, closedDomain := dev.AllocPD(), dev.OpenXRCD()
	closedCQ, err := dev.CreateCQ(1)
	if err != nil {
		t.Fatal(err)
	}
	closedSRQ := newSRQ(t, s, 0, engine.SRQInit{})
	xrcSRQ := newSRQ(t, s, 0, engine.SRQInit{XRCD: domain, CQ: s.cq})
	if err := errors.Join(closedPD.Close(), closedDomain.Close(), closedCQ.Close(),
		closedSRQ.Close()); err != nil {
		t.Fatal(err)
	}
	qp := func(pd *engine.PD, init engine.QPInit) error {
		if init.SendCQ == nil && init.Type != roce.TypeXRCRecv {
			init.SendCQ = s.cq
		}
		_, err := dev.CreateQP(pd, init)
		return err
	}
	srq := func(pd *engine.PD, init engine.SRQInit) error {
		_, err := dev.CreateSRQ(pd, init)
		return err
	}
	region := func(pd *engine.PD) error {
		_, err := dev.RegMR(pd, make([]byte, 8), rights)
		return err
	}
	handle := func(pd *engine.PD) error {
		_, err := dev.CreateAH(t.Context(), pd, engine.AddressVector{
			DGID: w.devs[1].GIDs()[gidIPv4], SGIDIndex: gidIPv4,
		})
		return err
	}
	recv := func(cq *engine.CQ) engine.QPInit { return engine.QPInit{RecvCQ: cq} }
	full, extended := recv(s.cq), recv(s.cq)
	full.MaxSendWR = roce.MaxWR + 1
	extended.Type, extended.Extensions = roce.TypeUC, roce.ExtSelectiveRepeat
	sharedXRC, sharedClosed, sharedOther := recv(s.cq), recv(s.cq), recv(s.cq)
	sharedXRC.SRQ, sharedClosed.SRQ, sharedOther.SRQ = xrcSRQ, closedSRQ, otherSRQ
	for what, err := range map[string]error{
		"QP, no PD":           qp(nil, recv(s.cq)),
		"QP, closed PD":       qp(closedPD, recv(s.cq)),
		"QP, PD of another":   qp(other.pd, recv(s.cq)),
		"QP, no CQ":           qp(s.pd, recv(nil)),
		"QP, closed CQ":       qp(s.pd, recv(closedCQ)),
		"QP, CQ of another":   qp(s.pd, recv(other.cq)),
		"QP, too deep":        qp(s.pd, full),
		"QP, SRQ for XRC":     qp(s.pd, sharedXRC),
		"QP, closed SRQ":      qp(s.pd, sharedClosed),
		"QP, SRQ of another":  qp(s.pd, sharedOther),
		"QP, no domain":       qp(s.pd, engine.QPInit{Type: roce.TypeXRCRecv}),
		"QP, closed domain":   qp(s.pd, engine.QPInit{Type: roce.TypeXRCRecv, XRCD: closedDomain}),
		"QP, extensions":      qp(s.pd, extended),
		"QP, no type":         qp(s.pd, engine.QPInit{Type: 77, RecvCQ: s.cq}),
		"SRQ, no PD":          srq(nil, engine.SRQInit{}),
		"SRQ, closed PD":      srq(closedPD, engine.SRQInit{}),
		"SRQ, too deep":       srq(s.pd, engine.SRQInit{MaxWR: roce.MaxWR + 1}),
		"SRQ, domain alone":   srq(s.pd, engine.SRQInit{XRCD: domain}),
		"SRQ, CQ alone":       srq(s.pd, engine.SRQInit{CQ: s.cq}),
		"SRQ, closed CQ":      srq(s.pd, engine.SRQInit{XRCD: domain, CQ: closedCQ}),
		"SRQ, closed domain":  srq(s.pd, engine.SRQInit{XRCD: closedDomain, CQ: s.cq}),
		"SRQ, CQ of another":  srq(s.pd, engine.SRQInit{XRCD: domain, CQ: other.cq}),
		"region, no PD":       region(nil),
		"region, closed PD":   region(closedPD),
		"region, PD of other": region(other.pd),
		"handle, no PD":       handle(nil),
		"handle, closed PD":   handle(closedPD),
		"handle, PD of other": handle(other.pd),
	} {
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := dev.RegMR(s.pd, make([]byte, 8), 1<<15); err == nil {
		t.Error("a region with rights that there are not")
	}
	// What failed counts nowhere, so all can be closed.
	s.qp.Close()
	s.mr.Deregister()
	err = errors.Join(xrcSRQ.Close(), domain.Close(), s.cq.Close(), s.pd.Close())
	other.qp.Close()
	other.mr.Deregister()
	err = errors.Join(err, otherSRQ.Close(), other.cq.Close(), other.pd.Close())
	if err != nil {
		t.Error(err)
	}
}

// TestClosedDevice refuses what would need it, and closing what it had is no
// error.
func TestClosedDevice(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	dev := w.devs[0]
	s := datagramSeat(t, dev, engine.QPInit{})
	s.attach(t, groups[0].gid)
	srq := newSRQ(t, s, 1, engine.SRQInit{})
	if err := errors.Join(dev.Close(), dev.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.CreateQP(s.pd, engine.QPInit{SendCQ: s.cq, RecvCQ: s.cq}); err == nil {
		t.Error("a QP on a closed device")
	}
	if _, err := dev.CreateSRQ(s.pd, engine.SRQInit{}); err == nil {
		t.Error("an SRQ on a closed device")
	}
	if err := s.qp.AttachMulticast(groups[1].gid); err == nil {
		t.Error("a member on a closed device")
	}
	s.qp.Close()
	s.mr.Deregister()
	if err := errors.Join(srq.Close(), s.cq.Close(), s.pd.Close()); err != nil {
		t.Error(err)
	}
}

// TestTenThousandOfEverything makes and closes one of each kind of object ten thousand times, a
// fifth of that where the race detector watches: nothing is left of them but numbers that rest.
func TestTenThousandOfEverything(t *testing.T) {
	cycles := 10_000
	if xsktest.RaceDetector {
		cycles = 2000
	}
	dev := simWorld(t, 1, sim.Faults{}, rawOptions).devs[0]
	buf := make([]byte, 4096)
	cycle := func() {
		pd, domain := dev.AllocPD(), dev.OpenXRCD()
		channel, err := dev.CreateCompChannel()
		if err != nil {
			t.Fatal(err)
		}
		cq, err := dev.CreateCQ(4, engine.OnChannel(channel))
		if err != nil {
			t.Fatal(err)
		}
		mr, err := dev.RegMR(pd, buf, rights)
		if err != nil {
			t.Fatal(err)
		}
		srq, err := dev.CreateSRQ(pd, engine.SRQInit{MaxWR: 2, XRCD: domain, CQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		if err := cq.Modify(2, 1000); err != nil {
			t.Fatal(err)
		}
		for _, typ := range []roce.QPType{
			roce.TypeRC, roce.TypeUD, roce.TypeRawPacket, roce.TypeXRCRecv,
		} {
			init := engine.QPInit{Type: typ, SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1}
			if typ == roce.TypeXRCRecv {
				init.XRCD = domain
			}
			qp, err := dev.CreateQP(pd, init)
			if err != nil {
				t.Fatal(err)
			}
			switch typ {
			case roce.TypeUD:
				err = errors.Join(qp.Start(1), qp.AttachMulticast(groups[0].gid))
			case roce.TypeRawPacket:
				err = errors.Join(qp.Start(0), qp.AttachEtherType(experimental))
			default:
				err = qp.Init(rights)
			}
			qp.StartTrace(4)
			qp.Close()
			if err != nil {
				t.Fatal(err)
			}
		}
		mr.Deregister()
		err = errors.Join(srq.Close(), domain.Close(), cq.Close(), channel.Close(), pd.Close())
		if err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	files, routines, held := openFiles(t), runtime.NumGoroutine(), heap.Live()
	for range cycles {
		cycle()
	}
	// Six numbers rest a cycle. Any object would take more than they do.
	if grown := heap.Grown(held, 300*int64(cycles)) / int64(cycles); grown > 300 {
		t.Errorf("%d bytes are left of each cycle", grown)
	} else {
		t.Logf("%d bytes are left of each cycle", grown)
	}
	// Of an earlier test one may have been about to end.
	if n := filesLeft(t, files); n > files {
		t.Errorf("%d descriptors before, %d after", files, n)
	}
	if n := goroutinesLeft(routines); n > routines {
		t.Errorf("%d goroutines before, %d after", routines, n)
	}
}

// goroutinesLeft counts goroutines, and gives those that were told to end the time
// to do so, up to a limit that only one that stays reaches.
func goroutinesLeft(want int) int {
	limit := time.Now().Add(timeout.Scaled(10 * time.Second))
	for time.Now().Before(limit) {
		if n := runtime.NumGoroutine(); n <= want {
			return n
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	return runtime.NumGoroutine()
}

// TestOpenFailsAtEachDescriptor opens a device with room for ever more file
// descriptors. Each that is missing makes an error, and nothing is left: no
// descriptor, no goroutine, no XDP program.
func TestOpenFailsAtEachDescriptor(t *testing.T) {
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	}()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	failed := 0
	err = pair.Do(vethpair.B, func() error {
		// The first time the eBPF library looks at the machine, and would remember
		// that it could not.
		first, err := engine.Open(vethpair.IfName, engine.Options{})
		if err != nil {
			return err
		}
		if err := first.Close(); err != nil {
			return err
		}
		files, routines := openFiles(t), runtime.NumGoroutine()
		for room := uint64(0); ; room++ {
			limit := unix.Rlimit{Cur: room, Max: before.Max}
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
				return err
			}
			dev, err := engine.Open(vethpair.IfName, engine.Options{})
			if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); e != nil {
				return errors.Join(e, err)
			}
			if err == nil {
				return dev.Close()
			}
			if room > 1000 {
				return err
			}
			failed++
			if n := filesLeft(t, files); n > files {
				return fmt.Errorf("room for %d (%w): %d descriptors before, %d after", room, err,
					files, n)
			}
			if n := goroutinesLeft(routines); n > routines {
				return fmt.Errorf("room for %d (%w): %d goroutines before, %d after", room, err,
					routines, n)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed < 10 {
		t.Errorf("it failed only %d times", failed)
	}
}
