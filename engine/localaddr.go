package engine

import (
	"xroce/engine/host"
	"xroce/roce/wire"
)

// Packets pass the addresses of the device twice. The queue pairs of a connection
// compare with their own address, so it is asked for every packet only when that
// address may be gone: after the first one was removed, see queue.lost. Then what
// came for it is dropped, and so is what would leave from it: the peer and this end
// both give up when their retries do, and go on if the address comes back before.

// isLocal reports whether packets for an address, on this VLAN, are for us.
func (q *queue) isLocal(gid wire.GID, vlan wire.VLAN) bool {
	_, ok := q.local[host.Addr{GID: gid, VLAN: vlan}]
	return ok
}

// mayLeave reports whether a frame of ours says that it comes from an address that
// we have.
func (q *queue) mayLeave(frame []byte) bool {
	src, vlan, ok := wire.FrameSource(frame)
	return ok && q.isLocal(src, vlan)
}

// setLocal replaces the addresses, and the MAC address under which the QPs reach
// each other. The caller holds mu.
func (q *queue) setLocal(addrs map[host.Addr]struct{}, mac [6]byte) {
	for a := range q.local {
		if _, ok := addrs[a]; !ok {
			q.lost = true
		}
	}
	q.local, q.loop.mac = addrs, mac
}

// setLocal has every queue look at these addresses.
func (d *Device) setLocal(addrs map[host.Addr]struct{}, mac [6]byte) {
	for _, q := range d.queues {
		q.lock()
		q.setLocal(addrs, mac)
		q.mu.Unlock()
	}
}

// isLocalVLAN reports whether the device has an address on a VLAN; every device is on
// that without a tag. The caller holds mu.
func (q *queue) isLocalVLAN(vlan wire.VLAN) bool {
	if vlan == 0 {
		return true
	}
	for a := range q.local {
		if a.VLAN == vlan {
			return true
		}
	}
	return false
}
