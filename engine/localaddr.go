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

// A station is where frames are sent to: a MAC address on a VLAN.
type station struct {
	mac  [6]byte
	vlan wire.VLAN
}

// isForOtherHost reports whether the frame of a packet was sent to the MAC address of somebody
// else, as those are that a switch floods or mirrors: the kernel calls it PACKET_OTHERHOST and
// drops it before IP, also where the interface is promiscuous (v6.18 net/ethernet/eth.c,
// eth_type_trans; net/ipv4/ip_input.c, ip_rcv_core). A group is everybody's. The address of the
// port is right on all its VLANs, that of a VLAN's interface on that one.
func (q *queue) isForOtherHost(p *wire.Packet) bool {
	const group = 1 // in the first byte (IEEE 802.3, clause 3.2.3)
	if p.DstMAC == q.loop.mac || p.DstMAC[0]&group != 0 {
		return false
	}
	_, ours := q.stations[station{p.DstMAC, p.Tags.VLAN()}]
	return !ours
}

// stationsOf are those of the entries of a GID table.
func stationsOf(entries []host.GIDEntry) map[station]struct{} {
	stations := make(map[station]struct{})
	for i := range entries {
		stations[station{entries[i].MAC, entries[i].VLAN}] = struct{}{}
	}
	return stations
}

// setLocal replaces the addresses with their stations, and the MAC address under which the QPs
// reach each other. The caller holds mu.
func (q *queue) setLocal(
	addrs map[host.Addr]struct{}, stations map[station]struct{}, mac [6]byte,
) {
	for a := range q.local {
		if _, ok := addrs[a]; !ok {
			q.lost = true
		}
	}
	q.local, q.stations, q.loop.mac = addrs, stations, mac
}

// setLocal has every queue look at these addresses.
func (d *Device) setLocal(addrs map[host.Addr]struct{}, mac [6]byte) {
	stations := stationsOf(d.gids.Entries())
	for _, q := range d.queues {
		q.lock()
		q.setLocal(addrs, stations, mac)
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
