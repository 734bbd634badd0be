package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A probe uses what a capability promises. Its error says that there is no such thing.
type probe struct {
	bit  engine.CapFlags
	name string
	try  func(p *prober) error
}

// A prober has what probes use: a pair of devices, the second of which is probed.
type prober struct {
	*testing.T
	o engine.Options
	w *world
}

// pair makes another pair of connected seats.
func (p *prober) pair() (a, b *seat) { return pairOn(p.T, p.w) }

// errNoCall is of capabilities that no call here could give.
var errNoCall = errors.New("there is no call for it")

func noCall(*prober) error { return errNoCall }

// status is an error for what a work request should not have come to.
func (p *prober) status(s *seat, want roce.Status) error {
	if wc := p.w.take(s.cq, 1)[0]; wc.Status != want {
		return fmt.Errorf("%s, want %s", wc.Status, want)
	}
	return nil
}

// probes are those of every flag of enum ib_uverbs_device_cap_flags, v6.18
// include/uapi/rdma/ib_user_verbs.h.
var probes = []probe{
	{1 << 0, "RESIZE_MAX_WR", func(p *prober) error {
		_, b := p.pair()
		return b.qp.Modify(&roce.Attr{}, roce.AttrCap)
	}},
	{engine.CapBadPKeyCounter, "BAD_PKEY_CNTR", probeBadPKey},
	{engine.CapBadQKeyCounter, "BAD_QKEY_CNTR", probeBadQKey},
	{1 << 3, "RAW_MULTI", func(p *prober) error {
		if !p.o.RawPackets {
			return errNoCall
		}
		group := wire.GID{0: 0xff, 1: 0x0e, 15: 9}
		return rawSeat(p.T, p.w.devs[1]).qp.AttachMulticast(group)
	}},
	{1 << 4, "AUTO_PATH_MIG", func(p *prober) error {
		_, b := p.pair()
		return b.qp.Modify(&roce.Attr{}, roce.AttrPathMigState)
	}},
	{1 << 5, "CHANGE_PHY_PORT", func(p *prober) error {
		_, b := p.pair()
		return b.qp.Modify(&roce.Attr{}, roce.AttrPort)
	}},
	{1 << 6, "UD_AV_PORT_ENFORCE", noCall},
	{engine.CapCurrQPStateMod, "CURR_QP_STATE_MOD", func(p *prober) error {
		_, b := p.pair()
		const mask = roce.AttrState | roce.AttrCurState
		err := b.qp.Modify(&roce.Attr{State: roce.StateSQD, CurState: roce.StateSQD}, mask)
		if err == nil {
			return errors.New("a state that it is not in was believed")
		}
		return b.qp.Modify(&roce.Attr{State: roce.StateRTS, CurState: roce.StateRTS}, mask)
	}},
	{1 << 8, "SHUTDOWN_PORT", noCall},
	// That of a host which tells of its port is in TestAttrPortEvents.
	{engine.CapPortActiveEvent, "PORT_ACTIVE_EVENT", noCall},
	{engine.CapRCRNRNAKGen, "RC_RNR_NAK_GEN", probeRNR},
	{engine.CapSRQResize, "SRQ_RESIZE", probeSRQResize},
	{1 << 14, "N_NOTIFY_CQ", noCall},
	{engine.CapMemWindow, "MEM_WINDOW", probeWindow},
	{1 << 18, "UD_IP_CSUM", noCall},
	{engine.CapXRC, "XRC", func(p *prober) error {
		x := newXRCPair(p.T, p.w)
		wr := writeTo(x.a, x.b, roce.OpSend, 100)
		wr.RemoteSRQN = x.srqs[0].SRQN()
		x.a.send(p.T, wr)
		return p.status(x.a, roce.StatusSuccess)
	}},
	{engine.CapMemMgtExtensions, "MEM_MGT_EXTENSIONS", probeMemoryManagement},
	{engine.CapMWType2A, "MEM_WINDOW_TYPE_2A", func(p *prober) error {
		return probeWindow2(p, true)
	}},
	{engine.CapMWType2B, "MEM_WINDOW_TYPE_2B", func(p *prober) error {
		return probeWindow2(p, false)
	}},
	{1 << 25, "RC_IP_CSUM", noCall},
	{1 << 26, "RAW_IP_CSUM", noCall},
	{1 << 29, "MANAGED_FLOW_STEERING", noCall},
	{1 << 34, "RAW_SCATTER_FCS", noCall},
	{1 << 36, "PCI_WRITE_END_PADDING", noCall},
	{engine.CapFlushGlobal, "FLUSH_GLOBAL", func(p *prober) error {
		a, b := p.pair()
		return p.flush(a, b.mr, wire.FlushGlobal)
	}},
	{engine.CapFlushPersistent, "FLUSH_PERSISTENT", func(p *prober) error {
		a, b := p.pair()
		mr, _ := regFile(p.T, b, 2)
		return p.flush(a, mr, wire.FlushPersistent)
	}},
	{engine.CapAtomicWrite, "ATOMIC_WRITE", func(p *prober) error {
		a, b := p.pair()
		copy(a.mr.Bytes(), "atomical")
		a.send(p.T, writeTo(a, b, roce.OpAtomicWrite, 8))
		if err := p.status(a, roce.StatusSuccess); err != nil {
			return err
		}
		return same(b.mr.Bytes()[:8], []byte("atomical"))
	}},
}

// shownElsewhere are flags that have no probe here: the GUID is made and printed by
// cmd/xroce, whose tests look for it.
const shownElsewhere = engine.CapSysImageGUID

func same(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("memory has %q, want %q", got, want)
	}
	return nil
}

// flush flushes a region.
func (p *prober) flush(a *seat, mr *engine.MR, how uint8) error {
	a.send(p.T, roce.SendWR{
		Opcode: roce.OpFlush, Flags: roce.SendSignaled, RemoteAddr: mr.Addr(), RKey: mr.RKey(),
		Flush: how, FlushLength: 8,
	})
	return p.status(a, roce.StatusSuccess)
}

func probeBadPKey(p *prober) error {
	g := newSiegeOf(p.T, p.o)
	frame := g.next()
	frame[offBTH+3] ^= 1
	reseal(frame)
	g.attack(frame)
	return counted(p.T, g.b.dev, counter.DropBadPKey)
}

func probeBadQKey(p *prober) error {
	a := datagramSeat(p.T, p.w.devs[0], engine.QPInit{})
	b := datagramSeat(p.T, p.w.devs[1], engine.QPInit{})
	ah := a.handle(p.T, b.dev.GIDs()[gidIPv4], gidIPv4)
	wr := a.datagram(ah, b.qp.QPN(), 8)
	wr.RemoteQKey++
	a.send(p.T, wr)
	p.w.succeed(a.cq, 1)
	p.w.idle()
	return counted(p.T, b.dev, counter.DropBadQKey)
}

// counted reports whether a counter moved.
func counted(t *testing.T, d *engine.Device, id counter.ID) error {
	if counters(t, d)[id.String()] == 0 {
		return fmt.Errorf("%s is 0", id)
	}
	return nil
}

func probeRNR(p *prober) error {
	a, b := p.pair()
	a.send(p.T, writeTo(a, b, roce.OpSend, 8))
	p.w.run(func() bool { return counted(p.T, b.dev, counter.SendRNR) == nil })
	b.recv(p.T, 1, 0, 8)
	return p.status(a, roce.StatusSuccess)
}

func probeSRQResize(p *prober) error {
	_, b := p.pair()
	srq := newSRQ(p.T, b, 0, engine.SRQInit{MaxWR: 1})
	const more = 1000
	if err := srq.Modify(roce.SRQAttr{MaxWR: more}, roce.SRQAttrMaxWR); err != nil {
		return err
	}
	for i := range more {
		if err := srq.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(i, 1)}}); err != nil {
			return err
		}
	}
	return nil
}

func probeWindow(p *prober) error {
	a, b := lend(p.T, p.w, engine.QPInit{})
	mw := b.window(p.T, mem.WindowType1)
	key, err := mw.Bind(b.qp, engine.MWBind{
		MR: b.region, Addr: b.region.Addr(), Length: 64, Access: mem.RemoteWrite,
	})
	if err != nil {
		return err
	}
	p.w.idle()
	a.send(p.T, through(a, roce.OpWrite, key, mw.Addr(), 64))
	return p.status(a, roce.StatusSuccess)
}

// probeWindow2 wants windows of type 2 to be for the QP that bound them, and to be of one
// type of the two.
func probeWindow2(p *prober, twoA bool) error {
	a, b := lend(p.T, p.w, engine.QPInit{})
	mw := b.bound(p.T, p.w, 0, 64, mem.RemoteWrite)
	a.send(p.T, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
	if err := p.status(a, roce.StatusSuccess); err != nil {
		return err
	}
	other, _ := p.pair()
	other.send(p.T, through(other, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
	if err := p.status(other, roce.StatusRemAccessErr); err != nil {
		return err
	}
	if b.dev.Windows2A() != twoA {
		return errors.New("windows of type 2 are of the other type")
	}
	return nil
}

// probeMemoryManagement registers memory by a work request, lets the peer use it and take
// it away, registers it under another key, and takes it away itself.
func probeMemoryManagement(p *prober) error {
	a, b := p.pair()
	r, err := b.dev.RegIndirect(b.pd, 1)
	if err != nil {
		return err
	}
	layout, err := mem.NewList([]mem.Piece{b.mr.Piece(64, 64)})
	if err != nil {
		return err
	}
	for round := range 2 {
		wr := r.UMR(layout, rights|mem.Invalidatable)
		wr.Flags, wr.UMR.NewKey = roce.SendSignaled, mem.NextKey(r.LKey())
		before := r.RKey()
		b.send(p.T, wr)
		if err := p.status(b, roce.StatusSuccess); err != nil {
			return err
		}
		if r.RKey() == before {
			return errors.New("the key stays")
		}
		copy(a.mr.Bytes(), "by the new key")
		a.send(p.T, through(a, roce.OpWrite, r.RKey(), r.Addr(), 14))
		if err := p.status(a, roce.StatusSuccess); err != nil {
			return err
		}
		if err := same(b.mr.Bytes()[64:][:14], []byte("by the new key")); err != nil {
			return err
		}
		take := roce.SendWR{
			Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: r.RKey(),
		}
		who := b
		if round == 0 { // the peer does it
			who, take.Opcode = a, roce.OpSendInv
			b.recv(p.T, 1, 0, 8)
		}
		who.send(p.T, take)
		if err := p.status(who, roce.StatusSuccess); err != nil {
			return err
		}
		if round == 0 {
			p.w.succeed(b.cq, 1)
		}
	}
	a.send(p.T, through(a, roce.OpWrite, r.RKey(), r.Addr(), 14))
	return p.status(a, roce.StatusRemAccessErr)
}

// TestCapabilityFlags: the device says of each flag what its probe finds.
func TestCapabilityFlags(t *testing.T) {
	for _, o := range []engine.Options{{}, {Windows2A: true}, {RawPackets: true}} {
		caps := engine.CapFlags(0)
		known := shownElsewhere
		for _, one := range probes {
			p := &prober{t, o, simWorld(t, 2, sim.Faults{}, o)}
			dev := p.w.devs[1]
			caps, known = dev.Query().Caps, known|one.bit
			if err := one.try(p); (err == nil) != (caps&one.bit != 0) {
				t.Errorf("%s is %t, but its probe says %v", one.name, caps&one.bit != 0, err)
			}
		}
		if caps&^known != 0 {
			t.Errorf("nothing shows flags %#x", uint64(caps&^known))
		}
	}
}
