package filter

import (
	"net/netip"

	"xroce/engine/capture"
	"xroce/roce/wire"
)

// EtherTypes and IP protocols that have names in filters.
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherVLAN = 0x8100
	etherIPv6 = 0x86dd
	etherQinQ = 0x88a8

	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// A view is a packet with what tests want to know of it, found when first asked for.
type view struct {
	packet *capture.Packet

	parsed    bool
	etherType int // behind VLAN tags, -1 for none
	vlan      int // the ID of the outermost tag, -1 for none
	network   int // offset of the network header
	protocol  int // of IP, -1 for none
	transport int // offset of the transport header, -1 for a later fragment
	roce      wire.Packet
	decoded   bool
	isRoCE    bool
}

// reset begins with a packet.
func (v *view) reset(p *capture.Packet) { v.packet, v.parsed, v.decoded = p, false, false }

// size is how many bytes there are.
func (v *view) size() int { return len(v.packet.Head) + len(v.packet.Tail) }

// load reads n bytes, false when the frame ends before.
func (v *view) load(off, n int) (value uint64, ok bool) {
	if off < 0 || off+n > v.size() {
		return 0, false
	}
	for i := off; i < off+n; i++ {
		b := byte(0)
		if head := v.packet.Head; i < len(head) {
			b = head[i]
		} else {
			b = v.packet.Tail[i-len(head)]
		}
		value = value<<8 | uint64(b)
	}
	return value, true
}

// addr reads an IP address.
func (v *view) addr(off, n int) netip.Addr {
	var b [16]byte
	for i := range n {
		x, ok := v.load(off+i, 1)
		if !ok {
			return netip.Addr{}
		}
		b[i] = byte(x)
	}
	if n == 4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b)
}

// parse finds the headers.
func (v *view) parse() {
	if v.parsed {
		return
	}
	v.parsed, v.etherType, v.vlan, v.protocol, v.transport = true, -1, -1, -1, -1
	for off, tags := 12, 0; ; off, tags = off+4, tags+1 {
		t, ok := v.load(off, 2)
		if !ok {
			return
		}
		if tags < 2 && (t == etherVLAN || t == etherQinQ) {
			if tci, ok := v.load(off+2, 2); ok && tags == 0 {
				v.vlan = int(tci & 0xfff)
			}
			continue
		}
		v.etherType, v.network = int(t), off+2
		break
	}
	first, ok := v.load(v.network, 1)
	switch {
	case v.etherType == etherIPv4 && ok && first>>4 == 4 && first&15 >= 5:
		if p, ok := v.load(v.network+9, 1); ok {
			v.protocol = int(p)
		}
		if frag, ok := v.load(v.network+6, 2); ok && frag&0x1fff == 0 {
			v.transport = v.network + int(first&15)*4
		}
	case v.etherType == etherIPv6 && ok && first>>4 == 6:
		if p, ok := v.load(v.network+6, 1); ok {
			v.protocol, v.transport = int(p), v.network+40
		}
	}
}

// addrs returns the addresses of IP or ARP, two that are not valid where there are none.
func (v *view) addrs() (src, dst netip.Addr) {
	v.parse()
	switch v.etherType {
	case etherIPv4:
		return v.addr(v.network+12, 4), v.addr(v.network+16, 4)
	case etherIPv6:
		return v.addr(v.network+8, 16), v.addr(v.network+24, 16)
	case etherARP:
		return v.addr(v.network+14, 4), v.addr(v.network+24, 4)
	}
	return netip.Addr{}, netip.Addr{}
}

// ports returns the ports of UDP or TCP.
func (v *view) ports() (src, dst uint64, ok bool) {
	v.parse()
	if v.transport < 0 || v.protocol != protoUDP && v.protocol != protoTCP {
		return 0, 0, false
	}
	src, ok1 := v.load(v.transport, 2)
	dst, ok2 := v.load(v.transport+2, 2)
	return src, dst, ok1 && ok2
}

// rocePacket returns the packet decoded, nil when it is none of RoCE.
func (v *view) rocePacket() *wire.Packet {
	if !v.decoded {
		v.decoded = true
		v.isRoCE = v.roce.Decode(v.packet.Head, v.packet.Tail) == wire.OK
	}
	if !v.isRoCE {
		return nil
	}
	return &v.roce
}
