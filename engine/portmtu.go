package engine

import (
	"xroce/engine/host"
	"xroce/roce/wire"
	"xroce/xsk"
)

// linkMTU is the MTU for which a link has room, beside the Ethernet header and a VLAN tag.
func linkMTU(info xsk.Info) int { return info.MaxFrame - ethernetHeader - wire.TagLen }

// port is the port with no more MTU than the link of the queue has room for.
func (q *queue) port() host.Port {
	port := q.device.host.Port()
	port.MTU = min(port.MTU, linkMTU(q.link.Info()))
	return port
}

// activeMTU is the largest path MTU of the port as far as the link of the queue has room for it.
func (q *queue) activeMTU() wire.MTU { return q.port().ActiveMTU() }

// tellMTU tells the QPs for datagrams how long those may be, which is not a matter of their making:
// there is no peer to agree with. The caller holds mu.
func (q *queue) tellMTU() {
	m := q.activeMTU()
	for _, qp := range q.device.qps.All {
		if qp.home() == q && qp.Type().Datagram() {
			qp.core.SetPortMTU(m)
		}
	}
}
