package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// experimental is the EtherType that the XDP program hands over.
const experimental = 0x88b5

var rawOptions = engine.Options{RawPackets: true}

// rawSeat is a seat with a RAW_PACKET QP that takes some EtherTypes.
func rawSeat(t *testing.T, dev *engine.Device, etherTypes ...uint16) *seat {
	t.Helper()
	s := seatOn(t, dev, engine.QPInit{Type: roce.TypeRawPacket})
	if err := s.qp.Start(0); err != nil {
		t.Fatal(err)
	}
	for _, e := range etherTypes {
		if err := s.qp.AttachEtherType(e); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// frame sends a frame of n bytes from the front of the seat's region.
func (s *seat) frame(t *testing.T, to [6]byte, etherType uint16, n int) {
	t.Helper()
	s.fill(to, etherType, n)
	s.post(t, n)
}

// fill writes a frame of n bytes to the front of the seat's region.
func (s *seat) fill(to [6]byte, etherType uint16, n int) {
	b := s.mr.Bytes()[:n]
	for i := range b {
		b[i] = byte(i + n)
	}
	from := s.dev.Port().MAC
	copy(b, to[:])
	copy(b[6:], from[:])
	binary.BigEndian.PutUint16(b[12:], etherType)
}

// post sends the first n bytes of the seat's region as a frame.
func (s *seat) post(t *testing.T, n int) {
	t.Helper()
	s.send(t, roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{s.mr.SGE(0, n)},
	})
}

// TestRawFrames sends frames of odd sizes both ways, from an Ethernet header to the
// MTU.
func TestRawFrames(t *testing.T) {
	inWorlds(t, rawOptions, func(t *testing.T, w *world) {
		a, b := rawSeat(t, w.devs[0], experimental), rawSeat(t, w.devs[1], experimental)
		const at = 1 << 16
		for _, size := range []int{14, 15, 59, 60, 61, 1013, 1514, 4095, 4097, 4213, 4214} {
			for _, s := range []struct{ from, to *seat }{{a, b}, {b, a}} {
				s.to.recv(t, uint64(size), at, 5000)
				s.from.frame(t, s.to.dev.Port().MAC, experimental, size)
				w.succeed(s.from.cq, 1)
				wc := w.succeed(s.to.cq, 1)[0]
				if wc.WRID != uint64(size) || wc.ByteLen != uint32(size) ||
					wc.QPN != s.to.qp.QPN() || wc.Opcode != roce.WCRecv {
					t.Errorf("%d bytes: %+v", size, wc)
				}
				if !bytes.Equal(s.to.mr.Bytes()[at:][:size], s.from.mr.Bytes()[:size]) {
					t.Errorf("%d bytes: data differs", size)
				}
			}
		}
		for _, d := range w.devs {
			if n := counterOf(t, d, "rdma_recvs"); n != 11 {
				t.Errorf("%d frames counted", n)
			}
		}
	})
}

// TestRawFramesDropped for want of a receive, and because they are longer than
// theirs, which stays for the next.
func TestRawFramesDropped(t *testing.T) {
	inWorlds(t, rawOptions, func(t *testing.T, w *world) {
		a, b := rawSeat(t, w.devs[0]), rawSeat(t, w.devs[1], experimental)
		to := w.devs[1].Port().MAC
		a.frame(t, to, experimental, 100)
		w.succeed(a.cq, 1)
		w.run(func() bool { return counterOf(t, w.devs[1], "out_of_buffer") == 1 })
		b.recv(t, 7, 1000, 99)
		a.frame(t, to, experimental, 100)
		w.succeed(a.cq, 1)
		w.run(func() bool { return counterOf(t, w.devs[1], "drop_too_long") == 1 })
		a.frame(t, to, experimental, 99)
		if wc := w.succeed(b.cq, 1)[0]; wc.WRID != 7 || wc.ByteLen != 99 {
			t.Errorf("%+v", wc)
		}
		for _, v := range b.mr.Bytes()[1099:1110] {
			if v != 0 {
				t.Fatal("it wrote behind the receive")
			}
		}
	})
}

// TestRawFramesNeverLoop sends frames of a raw QP to its own device: they leave by
// the link and reach no QP here, whatever they say.
func TestRawFramesNeverLoop(t *testing.T) {
	inWorlds(t, rawOptions, func(t *testing.T, w *world) {
		a, own := rawSeat(t, w.devs[0]), rawSeat(t, w.devs[0], experimental)
		target := datagramSeat(t, w.devs[0], engine.QPInit{})
		own.recv(t, 1, 0, 2000)
		target.recv(t, 1, 0, 2000)
		a.frame(t, w.devs[0].Port().MAC, experimental, 100)
		// A forged datagram to a QP of the same device.
		forged := forgeDatagram(t, w.devs[0], target.qp.QPN())
		w.succeed(a.cq, 1)
		a.post(t, copy(a.mr.Bytes(), forged))
		w.succeed(a.cq, 1)
		// And to a group in which the QP is.
		target.attach(t, groups[0].gid)
		copy(a.mr.Bytes(), groups[0].mac[:])
		a.post(t, len(forged))
		w.succeed(a.cq, 1)
		for range 10 {
			w.devs[0].Progress()
		}
		for _, s := range []*seat{own, target} {
			var wcs [1]roce.Completion
			if n, err := s.cq.Poll(wcs[:]); n != 0 || err != nil {
				t.Errorf("%+v (%v)", wcs[0], err)
			}
		}
		values := counters(t, w.devs[0])
		looped, sent, received := values["loopback_packets"], values["tx_packets"],
			values["rcvd_pkts"]
		if looped != 0 || sent != 3 || received != 0 {
			t.Errorf("%d looped, %d sent, %d received", looped, sent, received)
		}
	})
}

// forgeDatagram makes a datagram of a device to itself that is right in everything.
func forgeDatagram(t *testing.T, dev *engine.Device, qpn uint32) []byte {
	t.Helper()
	path, err := dev.ResolvePath(t.Context(), engine.AddressVector{
		DGID: dev.GIDs()[gidIPv4], SGIDIndex: gidIPv4, HopLimit: 64,
	})
	if err != nil {
		t.Fatal(err)
	}
	path.SrcPort = 0xc000
	var header wire.Template
	if err := header.Init(path); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 200)
	b := frame[header.Len():]
	wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQP: qpn}.Put(b)
	wire.DETH{QKey: qkey, SrcQP: 17}.Put(b[wire.BTHLen:])
	return frame[:header.Seal(frame, wire.BTHLen+wire.DETHLen, 0)]
}

// TestRawQPGetsNoRoCE takes what is left of IPv4, IPv6 and tagged frames when RoCE
// has had its own.
func TestRawQPGetsNoRoCE(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, rawOptions)
	raw := rawSeat(t, w.devs[1], 0x0800, 0x86dd, experimental)
	for range 8 {
		raw.recv(t, 1, 0, 5000)
	}
	a := datagramSeat(t, w.devs[0], engine.QPInit{})
	b := datagramSeat(t, w.devs[1], engine.QPInit{})
	for _, index := range []int{gidIPv4, gidIPv6} {
		ah := a.handle(t, w.devs[1].GIDs()[index], index)
		b.recv(t, 1, 0, 100)
		a.send(t, a.datagram(ah, b.qp.QPN(), 10))
		a.send(t, a.datagram(ah, 17, 10)) // a QP that is not there
		w.succeed(a.cq, 2)
		w.succeed(b.cq, 1)
	}
	w.idle()
	var wcs [8]roce.Completion
	if n, err := raw.cq.Poll(wcs[:]); n != 0 || err != nil {
		t.Fatalf("a raw QP has RoCE: %+v (%v)", wcs[0], err)
	}
	forger := rawSeat(t, w.devs[0])
	to := w.devs[1].Port().MAC
	const tcp = 6
	for i, ip := range []struct {
		etherType uint16
		header    []byte
	}{
		{0x0800, []byte{0x45, 0, 0, 46, 0, 0, 0, 0, 64, tcp}},
		{0x86dd, []byte{0x60, 0, 0, 0, 0, 7, tcp, 64}},
	} {
		forger.fill(to, ip.etherType, 60+i)
		copy(forger.mr.Bytes()[14:], ip.header)
		forger.post(t, 60+i)
		w.succeed(forger.cq, 1)
	}
	tagged := func(n int, tags ...uint16) {
		b := forger.mr.Bytes()[1<<16:]
		copy(b, to[:])
		for i, tag := range tags {
			binary.BigEndian.PutUint16(b[12+4*i:], tag)
		}
		forger.send(t, roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendSignaled,
			SGList: []roce.SGE{forger.mr.SGE(1<<16, n)},
		})
		w.succeed(forger.cq, 1)
	}
	tagged(62, 0x8100, experimental)
	tagged(63, 0x88a8, 0x8100, experimental)
	for i, wc := range w.succeed(raw.cq, 4) {
		if wc.ByteLen != uint32(60+i) {
			t.Errorf("frame %d has %d bytes", i, wc.ByteLen)
		}
	}
	for _, tags := range [][]uint16{
		{0x8100, 0x8100, 0x8100, experimental}, {0x8915}, {0x0806}, {0x8100, 0x8915},
	} {
		tagged(64, tags...)
	}
	tagged(16, 0x8100, 0) // it ends in the tag
	w.idle()
	if n, _ := raw.cq.Poll(wcs[:]); n != 0 {
		t.Errorf("%d frames that are not for it", n)
	}
}

// TestRawMisuse needs the option, and is for raw QPs and frames alone.
func TestRawMisuse(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	s := seatOn(t, w.devs[0], engine.QPInit{})
	_, err := w.devs[0].CreateQP(s.pd, engine.QPInit{
		Type: roce.TypeRawPacket, SendCQ: s.cq, RecvCQ: s.cq,
	})
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a raw QP without the option: %v", err)
	}
	if err := s.qp.AttachEtherType(experimental); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("frames for an RC QP: %v", err)
	}
	w = simWorld(t, 2, sim.Faults{}, rawOptions)
	first, second := rawSeat(t, w.devs[0], experimental), rawSeat(t, w.devs[0])
	for _, etherType := range []uint16{experimental, 0, 0x05ff, 0x8100, 0x88a8, 0x8915} {
		if err := second.qp.AttachEtherType(etherType); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("EtherType %#04x: %v", etherType, err)
		}
	}
	first.qp.Close()
	if err := second.qp.AttachEtherType(experimental); err != nil {
		t.Errorf("it is free again, and yet: %v", err)
	}
	if err := first.qp.AttachEtherType(0x9000); err == nil {
		t.Error("a closed QP is attached")
	}
	for _, n := range []int{0, 13, 4501} {
		s := rawSeat(t, w.devs[1])
		s.post(t, n)
		if wc := w.take(s.cq, 1)[0]; wc.Status != roce.StatusLocLenErr {
			t.Errorf("a frame of %d bytes: %s", n, wc.Status)
		}
	}
}

// TestRawFramesToAGroup come when a QP of the device is in the group, and as long
// as one is in any group with that Ethernet address.
func TestRawFramesToAGroup(t *testing.T) {
	inWorlds(t, rawOptions, func(t *testing.T, w *world) {
		a, b := rawSeat(t, w.devs[0]), rawSeat(t, w.devs[1], experimental)
		member := datagramSeat(t, w.devs[1], engine.QPInit{})
		group := groups[0]
		twin := group.gid
		twin[12]-- // 238.193.2.3 has the same
		if twin.MulticastMAC(wire.FramingV2IPv4) != group.mac {
			t.Fatal("it has another")
		}
		member.attach(t, group.gid)
		member.attach(t, twin)
		member.detach(t, group.gid)
		b.recv(t, 1, 0, 1000)
		a.frame(t, group.mac, experimental, 100)
		w.succeed(a.cq, 1)
		w.succeed(b.cq, 1)
		if w.pair == nil {
			return // a simulated port gets the frames of every group
		}
		member.detach(t, twin)
		b.recv(t, 2, 0, 1000)
		a.frame(t, group.mac, experimental, 101)
		w.succeed(a.cq, 1)
		a.frame(t, w.devs[1].Port().MAC, experimental, 102)
		if wc := w.succeed(b.cq, 1)[0]; wc.ByteLen != 102 {
			t.Errorf("a frame of %d bytes to a group where nobody is", wc.ByteLen)
		}
	})
}
