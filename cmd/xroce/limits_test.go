package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/counter"
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

// toItself connects a QP to itself.
func toItself(t *testing.T, dev *engine.Device, qp *engine.QP) error {
	if err := qp.Init(mem.LocalWrite | mem.RemoteWrite); err != nil {
		return err
	}
	end, err := dev.Endpoint(qp, 0)
	if err != nil {
		return err
	}
	return qp.Connect(t.Context(), end, end, engine.ConnectOptions{})
}

// atomicWrite has a QP that is connected to itself write a word.
func atomicWrite(
	t *testing.T, dev *engine.Device, pd *engine.PD, qp *engine.QP, cq *engine.CQ,
) error {
	if err := toItself(t, dev, qp); err != nil {
		return err
	}
	mr, err := dev.RegMR(pd, make([]byte, 8), mem.LocalWrite|mem.RemoteWrite)
	if err != nil {
		return err
	}
	err = qp.PostSend(&roce.SendWR{
		Opcode: roce.OpAtomicWrite, Flags: roce.SendInline | roce.SendSignaled,
		Inline: []byte("atomical"), RemoteAddr: mr.Addr(), RKey: mr.RKey(),
	})
	if err != nil {
		return err
	}
	var wc [1]roce.Completion
	if _, err := cq.Wait(t.Context(), wc[:]); err != nil {
		return err
	}
	// What the device wrote is ordered before this by its progress lock.
	if err := dev.Err(); err != nil {
		return err
	}
	if wc[0].Status != roce.StatusSuccess || string(mr.Bytes()) != "atomical" {
		return fmt.Errorf("%s, %q", wc[0].Status, mr.Bytes())
	}
	return nil
}

// TestCapabilitiesAreTrue looks for what each flag promises.
func TestCapabilitiesAreTrue(t *testing.T) {
	b, _ := simBench(t)
	dev, err := b.open("xr1", engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(1)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	counters, err := dev.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counters {
		known[c.Name] = true
	}
	counted := func(id counter.ID) error {
		if !known[id.String()] {
			return fmt.Errorf("no counter %s", id)
		}
		return nil
	}
	promises := map[string]func() error{
		"BAD_PKEY_CNTR":  func() error { return counted(counter.DropBadPKey) },
		"BAD_QKEY_CNTR":  func() error { return counted(counter.DropBadQKey) },
		"RC_RNR_NAK_GEN": func() error { return counted(counter.SendRNR) },
		"CURR_QP_STATE_MOD": func() error {
			qp, err := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq})
			if err != nil {
				return err
			}
			defer qp.Close()
			if err := toItself(t, dev, qp); err != nil {
				return err
			}
			return qp.Modify(&roce.Attr{State: roce.StateRTS, CurState: roce.StateRTS},
				roce.AttrState|roce.AttrCurState)
		},
		"SRQ_RESIZE": func() error {
			srq, err := dev.CreateSRQ(pd, engine.SRQInit{MaxWR: 1})
			if err != nil {
				return err
			}
			return srq.Modify(roce.SRQAttr{MaxWR: 100}, roce.SRQAttrMaxWR)
		},
		"XRC": func() error {
			_, err := dev.CreateQP(pd, engine.QPInit{
				Type: roce.TypeXRCRecv, XRCD: dev.OpenXRCD(),
			})
			return err
		},
		"MEM_WINDOW": func() error {
			mw, err := pd.AllocMW(mem.WindowType1)
			if err == nil {
				mw.Dealloc()
			}
			return err
		},
		"MEM_WINDOW_TYPE_2B": func() error {
			mw, err := pd.AllocMW(mem.WindowType2)
			if err == nil {
				mw.Dealloc()
			}
			if dev.Windows2A() {
				return errors.New("windows of type 2 are of type 2A")
			}
			return err
		},
		"FLUSH_GLOBAL": func() error {
			_, err := dev.RegMR(pd, make([]byte, 8), mem.FlushGlobal)
			return err
		},
		"ATOMIC_WRITE": func() error {
			qp, err := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq, MaxInline: 8})
			if err != nil {
				return err
			}
			defer qp.Close()
			return atomicWrite(t, dev, pd, qp, cq)
		},
		// The GUID is printed, and the event needs an interface of the kernel: it
		// is shown in xroce/engine.
		"SYS_IMAGE_GUID": nil, "PORT_ACTIVE_EVENT": nil,
	}
	for _, c := range append(deviceCaps, deviceCapsEx...) {
		if uint64(dev.Query().Caps)&c.value == 0 {
			continue
		}
		promise, ok := promises[c.name]
		if !ok {
			t.Errorf("%s: nothing shows it", c.name)
		} else if promise != nil {
			if err := promise(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}
