package engine_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// TestHostileCreateArgumentsOfDevice: each create call of a device with each of
// its arguments wrong in turn. The error is the right one, the domain can be
// closed, so nothing is left in it, and the device serves on.
func TestHostileCreateArgumentsOfDevice(t *testing.T) {
	g := newSiege(t)
	dev, other := g.b.dev, g.a
	cq := g.b.cq
	qp := func(change func(*engine.QPInit)) func(*engine.PD) error {
		return func(pd *engine.PD) error {
			init := engine.QPInit{SendCQ: cq, RecvCQ: cq}
			change(&init)
			_, err := dev.CreateQP(pd, init)
			return err
		}
	}
	srq := func(init engine.SRQInit) func(*engine.PD) error {
		return func(pd *engine.PD) error { _, err := dev.CreateSRQ(pd, init); return err }
	}
	for name, create := range map[string]func(pd *engine.PD) error{
		"QP type":        qp(func(i *engine.QPInit) { i.Type = 77 }),
		"GSI":            qp(func(i *engine.QPInit) { i.Type = roce.TypeGSI }),
		"raw":            qp(func(i *engine.QPInit) { i.Type = roce.TypeRawPacket }),
		"no send CQ":     qp(func(i *engine.QPInit) { i.SendCQ = nil }),
		"no receive CQ":  qp(func(i *engine.QPInit) { i.RecvCQ = nil }),
		"foreign CQ":     qp(func(i *engine.QPInit) { i.SendCQ = other.cq }),
		"deep":           qp(func(i *engine.QPInit) { i.MaxSendWR = roce.MaxWR + 1 }),
		"negative":       qp(func(i *engine.QPInit) { i.MaxRecvWR = -1 }),
		"pieces":         qp(func(i *engine.QPInit) { i.MaxSendSGE = 33 }),
		"receive pieces": qp(func(i *engine.QPInit) { i.MaxRecvSGE = math.MaxInt32 }),
		"inline":         qp(func(i *engine.QPInit) { i.MaxInline = roce.MaxInline + 1 }),
		"window":         qp(func(i *engine.QPInit) { i.Window = -1 }),
		"extensions":     qp(func(i *engine.QPInit) { i.Type, i.Extensions = roce.TypeUC, 1 }),
		"XRC domain":     qp(func(i *engine.QPInit) { i.XRCD = dev.OpenXRCD() }),
		"no XRC domain":  qp(func(i *engine.QPInit) { i.Type = roce.TypeXRCRecv }),
		"SRQ depth":      srq(engine.SRQInit{MaxWR: roce.MaxWR + 1}),
		"SRQ pieces":     srq(engine.SRQInit{MaxSGE: 33}),
		"SRQ half XRC":   srq(engine.SRQInit{CQ: cq}),
		"SRQ foreign":    srq(engine.SRQInit{XRCD: other.dev.OpenXRCD(), CQ: cq}),
		"MR rights": func(pd *engine.PD) error {
			_, err := dev.RegMR(pd, make([]byte, 8), mem.RemoteWrite)
			return err
		},
		"MR on demand": func(pd *engine.PD) error {
			_, err := dev.RegMR(pd, make([]byte, 8), mem.OnDemand)
			return err
		},
		"AH": func(pd *engine.PD) error {
			_, err := dev.CreateAH(t.Context(), pd, engine.AddressVector{SGIDIndex: 99})
			return err
		},
		"CQ": func(*engine.PD) error { _, err := dev.CreateCQ(-1); return err },
	} {
		for range 20 {
			pd := dev.AllocPD()
			if err := create(pd); err == nil {
				t.Errorf("%s: no error", name)
			}
			if err := pd.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	g.talk()
	if _, err := dev.CreateQP(other.pd, engine.QPInit{SendCQ: cq, RecvCQ: cq}); !errors.Is(err,
		roce.ErrInvalid) {
		t.Errorf("a QP in a domain of another device: %v", err)
	}
}

// rawQP is a QP of type RAW_PACKET of b in RTS, with receives posted.
func (g *siege) rawQP() (*engine.QP, *engine.CQ) {
	g.t.Helper()
	cq, err := g.b.dev.CreateCQ(64)
	if err != nil {
		g.t.Fatal(err)
	}
	qp, err := g.b.dev.CreateQP(g.b.pd, engine.QPInit{
		Type: roce.TypeRawPacket, SendCQ: cq, RecvCQ: cq, SignalAll: true,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, m := range []struct {
		state roce.State
		mask  roce.AttrMask
	}{{roce.StateInit, roce.AttrPort}, {roce.StateRTR, 0}, {roce.StateRTS, 0}} {
		err := qp.Modify(&roce.Attr{State: m.state, Port: 1}, roce.AttrState|m.mask)
		if err != nil {
			g.t.Fatal(err)
		}
	}
	for i := range 32 {
		err := qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{g.b.mr.SGE(4096*(i+1), 2000)}})
		if err != nil {
			g.t.Fatal(err)
		}
	}
	return qp, cq
}

// polled is what came to a CQ.
func polled(t *testing.T, cq *engine.CQ) []roce.Completion {
	t.Helper()
	var wcs [64]roce.Completion
	n, err := cq.Poll(wcs[:])
	if err != nil {
		t.Fatal(err)
	}
	return wcs[:n]
}

// TestHostileRawSend: a raw QP sends what the peer of another QP of the device
// could have sent, to the device itself. That QP does not move: what a raw QP
// sends goes to the link.
func TestHostileRawSend(t *testing.T) {
	g := newSiegeOf(t, engine.Options{RawPackets: true})
	raw, cq := g.rawQP()
	for op := range wire.Opcodes() {
		frame := g.next()
		frame[offBTH] = byte(op)
		reseal(frame)
		copy(g.b.mr.Bytes(), frame)
		g.unmoved(func() {
			err := raw.PostSend(&roce.SendWR{
				Opcode: roce.OpSend, SGList: []roce.SGE{g.b.mr.SGE(0, len(frame))},
			})
			if err != nil {
				t.Fatal(err)
			}
			for g.b.dev.Progress() {
				continue
			}
		})
		if wcs := polled(t, cq); len(wcs) != 1 || wcs[0].Status != roce.StatusSuccess {
			t.Fatalf("%s: %+v", op, wcs)
		}
	}
	if n := counters(t, g.b.dev)["loopback_packets"]; n != 0 {
		t.Errorf("%d packets went round", n)
	}
	g.talk()
}

// TestHostileRawReceive: a raw QP, even one that asked for all of IPv4, gets no
// RoCE packet, right or wrong, for whatever QP; others get no frame of its.
func TestHostileRawReceive(t *testing.T) {
	g := newSiegeOf(t, engine.Options{RawPackets: true})
	raw, cq := g.rawQP()
	for _, etherType := range []uint16{0x0800, 0x86dd, 0x88b5} {
		if err := raw.AttachEtherType(etherType); err != nil {
			t.Fatal(err)
		}
	}
	if err := raw.AttachEtherType(0x8915); err == nil {
		t.Error("a raw QP has the EtherType of RoCE v1")
	}
	g.talk()
	for op := range 256 {
		for _, qpn := range []uint32{g.b.qp.QPN() ^ 1, raw.QPN(), 0, 1, wire.MulticastQP} {
			frame := g.next()
			frame[offBTH] = byte(op)
			wire.SetBTHDestQP(frame[offBTH:], qpn)
			reseal(frame)
			g.unmoved(func() { g.attack(frame) })
			if op%16 == 0 {
				frame[len(frame)-1] ^= 1
				g.unmoved(func() { g.attack(frame) })
				g.unmoved(func() { g.attack(frame[:len(frame)-7]) })
			}
		}
	}
	if wcs := polled(t, cq); len(wcs) != 0 {
		t.Fatalf("a raw QP got RoCE packets: %+v", wcs)
	}
	frame := g.next()
	frame[12], frame[13] = 0x88, 0xb5
	g.unmoved(func() { g.attack(frame) })
	wcs := polled(t, cq)
	if len(wcs) != 1 || wcs[0].ByteLen != uint32(len(frame)) ||
		!bytes.Equal(g.b.mr.Bytes()[4096:][:len(frame)], frame) {
		t.Fatalf("a raw frame: %+v", wcs)
	}
	g.talk()
}

// multicast is a datagram of the attacker to a group.
func multicast(t *testing.T, group [4]byte, qkey uint32, payload []byte) []byte {
	t.Helper()
	var path wire.Template
	err := path.Init(wire.Path{
		Framing: wire.FramingV2IPv4, SrcMAC: [6]byte{2, 9},
		DstMAC: [6]byte{0x01, 0x00, 0x5e, group[1] & 0x7f, group[2], group[3]},
		Src:    wire.GIDFromIPv4([4]byte{10, 0, 0, 99}), Dst: wire.GIDFromIPv4(group), HopLimit: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := wire.UDSendOnly.Spec()
	n := wire.BTHLen + int(spec.HeaderLen) + len(payload)
	frame := make([]byte, path.FrameLen(n))
	b := frame[path.Len():]
	wire.BTH{
		Opcode: wire.UDSendOnly, M: true, PKey: wire.DefaultPKey, DestQP: wire.MulticastQP,
	}.Put(b)
	wire.DETH{QKey: qkey, SrcQP: 77}.Put(b[spec.Offsets[wire.HeaderDETH]:])
	copy(b[n-len(payload):], payload)
	return frame[:path.Seal(frame, n, 1)]
}

// TestHostileMulticastMembers: QPs enter and leave a group, and die, in a flood
// of datagrams to it. Each datagram reaches exactly those that are members then,
// and every receive completes at most once.
func TestHostileMulticastMembers(t *testing.T) {
	g := newSiege(t)
	group := [4]byte{239, 1, 2, 3}
	gid := wire.GIDFromIPv4(group)
	frame, wrong := multicast(t, group, 7, make([]byte, 16)), multicast(t, group, 8, nil)
	const size = 8
	var qps [size]*engine.QP
	var cqs [size]*engine.CQ
	var member [size]bool
	open := func(i int) {
		var err error
		if cqs[i], err = g.b.dev.CreateCQ(256); err != nil {
			t.Fatal(err)
		}
		qps[i], err = g.b.dev.CreateQP(g.b.pd, engine.QPInit{
			Type: roce.TypeUD, SendCQ: cqs[i], RecvCQ: cqs[i],
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := qps[i].Start(7); err != nil {
			t.Fatal(err)
		}
	}
	for i := range size {
		open(i)
	}
	rounds := 4000
	if testing.Short() {
		rounds = 400
	}
	for round := range rounds {
		i := (round * 5) % size
		switch {
		case round%97 == 96:
			qps[i].Close()
			member[i] = false
			open(i)
		case member[i]:
			if err := qps[i].DetachMulticast(gid); err != nil {
				t.Fatal(err)
			}
			member[i] = false
		default:
			if err := qps[i].AttachMulticast(gid); err != nil {
				t.Fatal(err)
			}
			member[i] = true
		}
		for i := range size {
			err := qps[i].PostRecv(&roce.RecvWR{SGList: []roce.SGE{g.b.mr.SGE(4096*(i+1), 56)}})
			if err != nil && !errors.Is(err, roce.ErrQueueFull) {
				t.Fatal(err)
			}
		}
		g.unmoved(func() {
			g.attack(frame)
			g.attack(wrong)
		})
		for i := range size {
			if got := len(polled(t, cqs[i])); got != b2i(member[i]) {
				t.Fatalf("round %d: member %t, %d datagrams", round, member[i], got)
			}
		}
	}
	g.talk()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
