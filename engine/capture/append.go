package capture

import "encoding/binary"

// This file is for who writes a capture himself, without a goroutine between.

// AppendHeader begins a capture of an interface, with at most snap bytes of each frame; 0 is
// all.
func AppendHeader(b []byte, iface string, snap int) []byte { return appendHeader(b, iface, snap) }

// AppendPacket adds a packet, of which at most snap bytes are kept; 0 keeps all. At must be
// set.
func AppendPacket(b []byte, p *Packet, snap int) []byte {
	return appendPacket(b, p, p.At, p.Missing, snap, nil)
}

// AppendStatistics ends a capture.
func AppendStatistics(b []byte, s Statistics) []byte { return s.append(b) }

// CountPackets returns how many packets are whole in what was appended, from the beginning of a
// block on: so many of them can be read of a file that ends there.
func CountPackets(b []byte) (n uint64) {
	for len(b) >= 8 {
		kind, total := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if total < 8 || uint64(total) > uint64(len(b)) {
			break
		}
		if kind == blockPacket {
			n++
		}
		b = b[total:]
	}
	return n
}
