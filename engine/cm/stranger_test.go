package cm_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A stranger sends requests in the name of anybody, from a RAW_PACKET QP of a device.
type stranger struct {
	dev    *engine.Device
	cq     *engine.CQ
	mr     *engine.MR
	qp     *engine.QP
	target netip.Addr
	to     [6]byte   // MAC address of the target
	from   [6]byte   // MAC address of the frames
	vlan   wire.VLAN // of the frames, 0 for none
	port   uint16    // of the requests
	n      uint32    // requests so far
}

// A stranger's frames: each has enough room, and so many leave at once.
const (
	frameLen    = 512
	strangersAt = 64
)

// newStranger makes a stranger on a device with Options.RawPackets.
func newStranger(
	t testing.TB, dev *engine.Device, target netip.Addr, to [6]byte, port uint16,
) *stranger {
	t.Helper()
	s := &stranger{
		dev: dev, target: target, to: to, from: dev.Port().MAC, port: port,
	}
	pd := dev.AllocPD()
	var err error
	s.cq, err = dev.CreateCQ(strangersAt)
	must(t, err)
	s.mr, err = dev.RegMR(pd, make([]byte, strangersAt*frameLen), mem.LocalWrite)
	must(t, err)
	s.qp, err = dev.CreateQP(pd, engine.QPInit{
		Type: roce.TypeRawPacket, SendCQ: s.cq, RecvCQ: s.cq, MaxSendWR: strangersAt, MaxSendSGE: 1,
	})
	must(t, err)
	must(t, s.qp.Start(0))
	t.Cleanup(func() { must(t, s.qp.Close()) })
	return s
}

// request is a REQ that says it comes from an address.
func (s *stranger) request(src netip.Addr) *rcm.REQ {
	s.n++
	r := &rcm.REQ{
		LocalCommID: s.n, ServiceID: rcm.ServiceIDOf(rcm.PortSpaceTCP, s.port),
		LocalCAGUID: uint64(s.n), LocalQPN: 0x10000 + s.n, ResponderRes: 1, InitiatorDepth: 1,
		RemoteTimeout: 20, LocalTimeout: 20, RetryCount: 7, PKey: wire.DefaultPKey,
		PathMTU: wire.MTU1024, RNRRetryCount: 7, MaxCMRetries: 15,
		Primary: rcm.PathFields{
			LocalGID: wire.GIDFromAddr(src), RemoteGID: wire.GIDFromAddr(s.target), HopLimit: 64,
			LocalAckTimeout: 17,
		},
	}
	rcm.IPHeader{Src: netip.AddrPortFrom(src, 7), Dst: s.target}.Put(r.Private[:])
	return r
}

// A message is one of roce/cm.
type message interface{ Put(b []byte, tid uint64) }

// send sends a message in the name of an address, and waits until it has left.
func (s *stranger) send(t testing.TB, src netip.Addr, m message) {
	t.Helper()
	s.post(t, 0, src, m)
	s.left(t, 1)
}

// burst sends up to strangersAt requests from addresses that a function says.
func (s *stranger) burst(t testing.TB, n int, next func() netip.Addr) {
	t.Helper()
	for i := range n {
		src := next()
		s.post(t, i, src, s.request(src))
	}
	s.left(t, n)
}

// post sends a message from a slot.
func (s *stranger) post(t testing.TB, slot int, src netip.Addr, m message) {
	t.Helper()
	n := s.write(t, s.mr.Bytes()[slot*frameLen:], src, m)
	must(t, s.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled,
		SGList: []roce.SGE{s.mr.SGE(slot*frameLen, n)},
	}))
}

// left waits until so many frames have left.
func (s *stranger) left(t testing.TB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var wcs [strangersAt]roce.Completion
	for n > 0 {
		got, err := s.cq.Wait(ctx, wcs[:])
		must(t, err)
		n -= got
	}
}

// write writes the frame of a message and returns its length.
func (s *stranger) write(t testing.TB, b []byte, src netip.Addr, m message) int {
	t.Helper()
	framing := wire.FramingV2IPv4
	if src.Is6() {
		framing = wire.FramingV2IPv6
	}
	var template wire.Template
	must(t, template.Init(wire.Path{
		Framing: framing, SrcMAC: s.from, DstMAC: s.to, Src: wire.GIDFromAddr(src),
		Dst: wire.GIDFromAddr(s.target), HopLimit: 64, SrcPort: 50000,
		Tags: s.vlan.Tags(0),
	}))
	at := template.Len()
	wire.BTH{
		Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQP: 1, PSN: wire.PSN(s.n & 0xffffff),
	}.Put(b[at:])
	wire.DETH{QKey: roce.GSIQKey, SrcQP: 1}.Put(b[at+wire.BTHLen:])
	m.Put(b[at+wire.BTHLen+wire.DETHLen:], uint64(s.n))
	return template.Seal(b, wire.BTHLen+wire.DETHLen+rcm.MADLen, uint16(s.n))
}

// numbered is an address of a network, by its number there.
func numbered(base netip.Addr, n uint32) netip.Addr {
	b := base.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+n)
	return netip.AddrFrom4(b)
}
