package tunnel

import (
	"maps"
	"net/netip"
	"sync/atomic"

	"xroce/encap"
	"xroce/encap/seal"
)

// counts are those of a peer, or of what is of none.
type counts struct {
	txDatagrams, txBytes, txPackets atomic.Uint64
	rxDatagrams, rxBytes, rxPackets atomic.Uint64
	connects                        atomic.Uint64
	drops                           [numDrops]atomic.Uint64
	reasons                         [encap.NumReasons]atomic.Uint64
	seals                           [seal.NumReasons]atomic.Uint64
}

// drop is why a datagram went nowhere, besides the reasons of package encap.
type drop uint8

const (
	dropNoPeer     drop = iota // the peer is not connected
	dropFull                   // its queue is full
	dropNoRoute                // no peer has the address
	dropInside                 // the kernel's side did not take it
	dropBridge                 // it is for somebody elsewhere, or from nobody
	dropSource                 // a peer sent what is not from its addresses
	dropHint                   // the peer's hint does not fit the datagram
	dropChecksum               // the kernel's words do not fit the datagram
	dropStranger               // from an address that is no peer's
	dropSegment                // of another segment
	dropMarked                 // congested, and its sender does not know the mark (RFC 6040)
	dropKey                    // who asks has another key, or asks again
	dropPartition              // who asks is in another partition
	dropCookie                 // who asks is asked for a proof of his address
	dropRoom                   // no more peers may be learned
	dropStation                // as many are learned from the station that asks as may be
	dropPlaces                 // a peer asks for more connections than it may have
	dropIncomplete             // a segment of it did not come in time
	dropKind                   // a kind of datagram that the inside does not have

	numDrops = int(iota)
)

var dropNames = [numDrops]string{
	dropNoPeer: "no_peer", dropFull: "queue_full", dropNoRoute: "no_route",
	dropInside: "inside_refused", dropBridge: "not_forwarded", dropSource: "bad_source",
	dropHint: "bad_hint", dropChecksum: "bad_checksum_request", dropStranger: "stranger",
	dropSegment: "other_segment", dropKind: "unknown_kind",
	dropMarked: "congested", dropKey: "bad_key", dropPartition: "other_partition",
	dropCookie: "no_cookie", dropRoom: "too_many_peers", dropStation: "too_many_at_station",
	dropPlaces: "too_many_connections", dropIncomplete: "incomplete",
}

func (c *counts) drop(d drop) { c.drops[d].Add(1) }

// refuse counts a reason of package encap.
func (c *counts) refuse(r encap.Reason) { c.reasons[min(int(r), len(c.reasons)-1)].Add(1) }

// refuseSeal counts a reason of package seal.
func (c *counts) refuseSeal(r seal.Reason) { c.seals[r].Add(1) }

// sent counts a datagram of n bytes: the datagram last, and who looks reads that first. So whoever
// sees it sees its packets.
func (c *counts) sent(n, packets int) {
	c.txPackets.Add(uint64(packets))
	c.txBytes.Add(uint64(n))
	c.txDatagrams.Add(1)
}

// received counts a datagram of n bytes that went inside, after its packets and in the same order.
func (c *counts) received(n int) {
	c.rxBytes.Add(uint64(n))
	c.rxDatagrams.Add(1)
}

// dropped are the drops that happened.
func (c *counts) dropped() map[string]uint64 {
	m := map[string]uint64{}
	for i := range c.drops {
		if n := c.drops[i].Load(); n > 0 {
			m[dropNames[i]] = n
		}
	}
	for i := range c.reasons {
		if n := c.reasons[i].Load(); n > 0 {
			m[encap.Reason(i).String()] = n
		}
	}
	for i := range c.seals {
		if n := c.seals[i].Load(); n > 0 {
			m[seal.Reason(i).String()] = n
		}
	}
	return m
}

// PeerStats are what was counted of a peer. A datagram is a frame or an IP packet of the
// inside, a packet what it became: one message, or segments.
type PeerStats struct {
	Addr        netip.Addr        `json:"peer"`
	Up          bool              `json:"up"`
	Learned     bool              `json:"learned"`
	Connects    uint64            `json:"connects"` // how often it was found
	TxDatagrams uint64            `json:"tx_datagrams"`
	TxBytes     uint64            `json:"tx_bytes"`
	TxPackets   uint64            `json:"tx_packets"`
	RxDatagrams uint64            `json:"rx_datagrams"`
	RxBytes     uint64            `json:"rx_bytes"`
	RxPackets   uint64            `json:"rx_packets"`
	Dropped     map[string]uint64 `json:"dropped"`
}

// Stats are what a tunnel counted.
type Stats struct {
	Inside    string `json:"inside"`
	Segment   uint16 `json:"segment"`
	Addresses int    `json:"addresses"` // that were learned
	Moved     uint64 `json:"addresses_moved"`
	Evicted   uint64 `json:"addresses_evicted"`
	// Of suppression: hosts that are known, and questions that were answered here.
	Neighbours int    `json:"neighbours"`
	Answered   uint64 `json:"neighbours_answered"`

	// Of peers that are not named: how often one was learned, and forgotten.
	Learned   uint64 `json:"peers_learned"`
	Forgotten uint64 `json:"peers_forgotten"`

	Dropped map[string]uint64 `json:"dropped"` // what is of no peer
	Peers   []PeerStats       `json:"peers"`
	Group   *GroupStats       `json:"group,omitempty"` // nil for none
}

// GroupStats are what was counted of a multicast group. What came from it is counted with the
// peer that sent it, too.
type GroupStats struct {
	Addr        netip.Addr        `json:"group"`
	Up          bool              `json:"up"` // there is a peer
	TxDatagrams uint64            `json:"tx_datagrams"`
	TxBytes     uint64            `json:"tx_bytes"`
	TxPackets   uint64            `json:"tx_packets"`
	RxPackets   uint64            `json:"rx_packets"`
	Dropped     map[string]uint64 `json:"dropped"`
}

// stats are those of a group, nil for none.
func (g *group) stats() *GroupStats {
	if g == nil {
		return nil
	}
	c := &g.counts
	return &GroupStats{
		Addr: g.addr, Up: g.up(), TxDatagrams: c.txDatagrams.Load(), TxBytes: c.txBytes.Load(),
		TxPackets: c.txPackets.Load(), RxPackets: c.rxPackets.Load(), Dropped: c.dropped(),
	}
}

// Stats returns what was counted so far.
func (t *Tunnel) Stats() Stats {
	s := Stats{
		Group:  t.group.stats(),
		Inside: t.inside.Name, Segment: t.config.Segment, Dropped: maps.Clone(t.counts.dropped()),
	}
	if t.table != nil {
		t.bridge.Lock()
		t.table.Expire(t.dev.Now())
		b := t.table.Stats()
		s.Addresses, s.Moved, s.Evicted = t.table.Len(), b.Moved, b.Evicted
		t.bridge.Unlock()
	}
	if t.hosts != nil {
		t.bridge.Lock()
		t.hosts.Expire(t.dev.Now())
		s.Addresses = t.hosts.Len()
		t.bridge.Unlock()
	}
	if n := t.suppression; n != nil {
		n.mu.Lock()
		s.Neighbours, s.Answered = n.known.Len(), n.answered
		n.mu.Unlock()
	}
	s.Learned, s.Forgotten = t.learning.learned.Load(), t.learning.forgotten.Load()
	for _, p := range t.roster.Load().peers {
		c := &p.counts
		s.Peers = append(s.Peers, PeerStats{
			Addr: p.addr, Up: p.up(), Learned: p.learned, Connects: c.connects.Load(),
			TxDatagrams: c.txDatagrams.Load(), TxBytes: c.txBytes.Load(),
			TxPackets: c.txPackets.Load(), RxDatagrams: c.rxDatagrams.Load(),
			RxBytes: c.rxBytes.Load(), RxPackets: c.rxPackets.Load(), Dropped: c.dropped(),
		})
	}
	return s
}
