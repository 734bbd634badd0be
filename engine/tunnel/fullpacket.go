package tunnel

import "xroce/engine/cm"

// A path MTU is a power of two: on a wire with an MTU of 1500 it is 1024, and every packet wastes
// what the wire has room for beside that. Two ends over RC tell each other in their hellos what
// they have room for, and have full packets of the lesser (roce.Attr.PathBytes).

// packetUnit is what a hello counts full packets in.
const packetUnit = 16

// packetCode is a full packet as it is in a hello, of so many bytes or a little less, 0 for none.
func packetCode(bytes int) uint8 { return uint8(max(0, min(bytes/packetUnit-1, 255))) }

// packetBytes is what a code means, 0 for the path MTU.
func packetBytes(code uint8) int {
	if code == 0 {
		return 0
	}
	return (int(code) + 1) * packetUnit
}

// fullPacket is the payload of a full packet of two ends that said these hellos, 0 for the path
// MTU: when one of them has none to tell.
func fullPacket(ours, theirs []byte) int {
	our, err := parseHello(ours)
	their, failed := parseHello(theirs)
	if err != nil || failed != nil {
		return 0
	}
	return packetBytes(min(our.packet, their.packet))
}

// greeting is the hello for a peer.
func (t *Tunnel) greeting(p *peer) *hello {
	h := t.hello
	h.largest = uint32(t.longest())
	if t.config.Over == OverRC && !p.narrow.Load() {
		h.packet = packetCode(t.dev.PathBytes())
	}
	return &h
}

// noteLost has the next connection to a peer keep to the path MTU if this one found out that large
// packets alone are lost: what is in between takes less than both ends have room for.
func (t *Tunnel) noteLost(p *peer, conn *cm.Conn) {
	if conn.QP().Snapshot().LargeLost && !p.narrow.Swap(true) {
		t.config.Logger.Warn("packets above the path MTU are lost on the way: no more of them",
			"peer", p.addr.String())
	}
}
