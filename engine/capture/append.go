package capture

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
