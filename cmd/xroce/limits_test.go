package main

import (
	"context"
	"math"
	"testing"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// A limitRig is a device that limits are tried on.
type limitRig struct {
	dev *engine.Device
	pd  *engine.PD
	cq  *engine.CQ
}

// qp makes a QP as init has it.
func (r *limitRig) qp(change func(*engine.QPInit)) error {
	init := engine.QPInit{SendCQ: r.cq, RecvCQ: r.cq, MaxSendWR: 1, MaxRecvWR: 1}
	change(&init)
	qp, err := r.dev.CreateQP(r.pd, init)
	if err == nil {
		qp.Close()
	}
	return err
}

// srq makes a shared receive queue.
func (r *limitRig) srq(init engine.SRQInit) error {
	srq, err := r.dev.CreateSRQ(r.pd, init)
	if err == nil {
		err = srq.Close()
	}
	return err
}

// rdAtomic connects a QP to itself with so many READs outstanding.
func (r *limitRig) rdAtomic(init, dest uint8) error {
	qp, err := r.dev.CreateQP(r.pd, engine.QPInit{SendCQ: r.cq, RecvCQ: r.cq})
	if err != nil {
		return err
	}
	defer qp.Close()
	if err := qp.Init(0); err != nil {
		return err
	}
	end, err := r.dev.Endpoint(qp, 0)
	if err != nil {
		return err
	}
	path, err := r.dev.ResolvePath(context.Background(), engine.AddressVector{
		DGID: end.GID, HopLimit: 1,
	})
	if err != nil {
		return err
	}
	err = qp.Modify(&roce.Attr{
		State: roce.StateRTR, Path: path, PathMTU: r.dev.ActiveMTU(), DestQPN: end.QPN,
		MaxDestRdAtomic: dest,
	}, roce.AttrState|roce.AttrAV|roce.AttrPathMTU|roce.AttrDestQPN|roce.AttrRQPSN|
		roce.AttrMaxDestRdAtomic|roce.AttrMinRNRTimer)
	if err != nil {
		return err
	}
	return qp.Modify(&roce.Attr{State: roce.StateRTS, Timeout: 1, MaxRdAtomic: init},
		roce.AttrState|roce.AttrSQPSN|roce.AttrTimeout|roce.AttrRetryCnt|roce.AttrRNRRetry|
			roce.AttrMaxRdAtomic)
}

// stack lays n keys on top of each other.
func (r *limitRig) stack(n int) error {
	mr, err := r.dev.RegMR(r.pd, make([]byte, 1), 0)
	for range n {
		below := mr
		if err != nil {
			return err
		}
		if mr, err = r.dev.RegIndirect(r.pd, 1); err == nil {
			err = mr.ReregSG(mem.ChangeTranslation, nil, 0, []mem.Piece{below.Piece(0, 1)})
		}
	}
	return err
}

// TestLimitsAreTrue reaches each limit and goes one beyond it.
func TestLimitsAreTrue(t *testing.T) {
	b, _ := simBench(t)
	dev, err := b.open("xr1", engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	cq, err := dev.CreateCQ(1)
	if err != nil {
		t.Fatal(err)
	}
	r := &limitRig{dev: dev, pd: dev.AllocPD(), cq: cq}
	tries := map[string]func(n int) error{
		"max_qp_wr": func(n int) error {
			return r.qp(func(i *engine.QPInit) { i.MaxSendWR, i.MaxRecvWR = n, n })
		},
		"max_sge": func(n int) error {
			return r.qp(func(i *engine.QPInit) { i.MaxSendSGE, i.MaxRecvSGE = n, n })
		},
		"max_sge_rd": func(n int) error {
			return r.qp(func(i *engine.QPInit) { i.MaxSendSGE = n })
		},
		"max_inline_data": func(n int) error {
			return r.qp(func(i *engine.QPInit) { i.MaxInline = n })
		},
		"max_cqe": func(n int) error {
			cq, err := dev.CreateCQ(n)
			if err == nil {
				err = cq.Close()
			}
			return err
		},
		"max_srq_wr":  func(n int) error { return r.srq(engine.SRQInit{MaxWR: n}) },
		"max_srq_sge": func(n int) error { return r.srq(engine.SRQInit{MaxSGE: n}) },
		"max_layout_entries": func(n int) error {
			mr, err := dev.RegIndirect(r.pd, n)
			if err == nil {
				err = mr.Deregister()
			}
			return err
		},
		"max_layout_dims": func(n int) error {
			repeat := make([]uint64, n)
			for i := range repeat {
				repeat[i] = 1
			}
			_, err := mem.NewInterleaved(repeat, []mem.Block{{Bytes: 1, Strides: repeat}})
			return err
		},
		"max_layout_depth":    r.stack,
		"max_qp_rd_atom":      func(n int) error { return r.rdAtomic(0, uint8(n)) },
		"max_qp_init_rd_atom": func(n int) error { return r.rdAtomic(uint8(n), 0) },
	}
	values := limitValues(dev.Query())
	for name, try := range tries {
		n := int(values[name])
		if err := try(n); err != nil {
			t.Errorf("%s of %d: %v", name, n, err)
		}
		if err := try(n + 1); err == nil {
			t.Errorf("%s of %d is possible, one more than it says", name, n)
		}
	}
	if values["max_res_rd_atom"] > math.MaxInt32 || values["max_qp"] > math.MaxInt32 {
		t.Error("a limit does not fit an int of verbs")
	}
}

// TestLimitsOfMemoryWindows: what is said of memory windows is so: there are some, and
// those of type 2 are of type 2B, compared with queue pair and domain.
func TestLimitsOfMemoryWindows(t *testing.T) {
	b, _ := simBench(t)
	dev, err := b.open("xr1", engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}()
	const window, type2A, type2B = 1 << 17, 1 << 23, 1 << 24
	values := limitValues(dev.Query())
	caps := values["device_cap_flags"]
	if caps&window == 0 || (caps&type2A != 0) != dev.Windows2A() ||
		(caps&type2B != 0) == dev.Windows2A() {
		t.Errorf("device_cap_flags %#x, windows of type 2A: %t", caps, dev.Windows2A())
	}
	if n := values["max_mw"]; n != values["max_mr"] || n == 0 {
		t.Errorf("max_mw %d", n)
	}
	pd := dev.AllocPD()
	for _, typ := range []mem.WindowType{mem.WindowType1, mem.WindowType2} {
		mw, err := pd.AllocMW(typ)
		if err != nil {
			t.Fatal(err)
		}
		mw.Dealloc()
	}
	if err := pd.Close(); err != nil {
		t.Error(err)
	}
}

// TestCapabilitiesHaveNames: every flag that a device may have is printed by its name, and
// once. That the device has what it says is shown by the tests of engine, but for the GUID,
// which is made here.
func TestCapabilitiesHaveNames(t *testing.T) {
	for _, o := range []engine.Options{{}, {Windows2A: true}} {
		rest := uint64(engine.Attributes(o).Caps)
		for _, c := range append(deviceCaps, deviceCapsEx...) {
			rest &^= c.value
		}
		if rest != 0 {
			t.Errorf("flags %#x have no name", rest)
		}
	}
	const all = engine.ODPSend | engine.ODPRecv | engine.ODPWrite | engine.ODPRead |
		engine.ODPAtomic | engine.ODPSRQRecv | engine.ODPFlush | engine.ODPAtomicWrite
	paced := engine.Attributes(engine.Options{RawPackets: true}).Pacing.Types
	for name, tt := range map[string]struct {
		value uint64
		names []capability
	}{
		"odp":          {uint64(all), odpTransport},
		"general odp":  {uint64(engine.ODPSupport | engine.ODPImplicit), odpGeneral},
		"types of QPs": {uint64(paced), qpTypes},
	} {
		for _, c := range tt.names {
			tt.value &^= c.value
		}
		if tt.value != 0 {
			t.Errorf("%s: flags %#x have no name", name, tt.value)
		}
	}
	i := bench{machine: goodMachine()}.run(t, "devinfo", "-d", "eth0", "-v")
	contains(t, i.stdout, "SYS_IMAGE_GUID", "sys_image_guid:\t\t\t5054:00ff:fe77:1234")
}
