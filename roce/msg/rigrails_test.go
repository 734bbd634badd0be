package msg

import (
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// A part is memory as one adapter of a node knows it.
type part struct {
	table  *mem.Keys
	region *mem.Region
}

// register makes memory known to the adapters of a connection.
func (n *node) register(c *Conn, b []byte, access mem.Access) Memory {
	domain := &c.User.(*pipe).domain
	var m Memory
	var parts []part
	for i, table := range n.tables {
		if c.Adapters()>>i&1 == 0 {
			continue
		}
		region, err := table.Register(domain, b, access)
		must(n.world.t, err)
		n.regions[region] = true
		parts = append(parts, part{table, region})
		*m.By(uint8(i)) = Key{Addr: region.Addr(), LKey: region.LKey(), RKey: region.RKey()}
	}
	if m.Owner = parts; len(n.tables) == 1 {
		m.Owner = parts[0].region
	}
	return m
}

// free has adapters forget memory.
func (n *node) free(owner any) {
	parts, several := owner.([]part)
	if !several {
		parts = []part{{n.keys, owner.(*mem.Region)}}
	}
	for _, p := range parts {
		must(n.world.t, p.table.Deregister(p.region))
		delete(n.regions, p.region)
	}
}

// home is the pipe of the first rail of the connection, which has its domain.
func (p *pipe) home() *pipe { return p.conn.User.(*pipe) }

// tables are the keys of the adapters at both ends.
func (p *pipe) tables() (from, to *mem.Keys) {
	return p.from.tables[p.rail.ours], p.to.tables[p.peer.rail.ours]
}

// kill moves the queue pair of from to ERR: its receives are flushed.
func (p *pipe) kill() {
	if p.dead {
		return
	}
	p.dead = true
	flushed := verbs.Completion{Status: verbs.StatusWRFlushErr}
	p.peer.came = append(p.peer.came, arrivedWC{wc: flushed})
}

// hangUp ends all queue pairs of a connection that is over.
func (w *world) hangUp(c *Conn) {
	for _, p := range w.pipes {
		if p.conn != c {
			continue
		}
		p.peer.over = true
		if c.several {
			p.kill()
			continue
		}
		p.dead, p.peer.dead = true, true // both go to ERR
	}
}

// giveUp ends a work request that was never acknowledged. It may be on its way still, or have
// arrived: only its acknowledgement is lost.
func (p *pipe) giveUp(wr verbs.SendWR) {
	w := p.from.world
	if n := w.rand.IntN(3); n > 0 {
		for _, x := range append([]verbs.SendWR{wr}, p.queue...) {
			if x.Opcode == verbs.OpRead {
				break // its answer is lost
			}
			p.late = append(p.late, p.gathered(x))
		}
		for n == 1 && len(p.late) > 0 {
			p.arriveLate()
		}
	}
	p.done = append(p.done, verbs.Completion{WRID: wr.WRID, Status: verbs.StatusRetryExcErr})
	p.kill()
}

// gathered is a work request with its data, as it is on the wire.
func (p *pipe) gathered(wr verbs.SendWR) verbs.SendWR {
	from, _ := p.tables()
	for _, s := range wr.SGList {
		b := make([]byte, s.Length)
		p.check(&wr, from.Load(p.home().domain.Local(), s.LKey, s.Addr, b, 0))
		wr.Inline = append(wr.Inline, b...)
	}
	wr.SGList = nil
	return wr
}

// arriveLate has the peer take what from has given up, if its queue pair still takes anything.
func (p *pipe) arriveLate() {
	wr := p.late[0]
	p.late = p.late[1:]
	if p.peer.dead {
		p.late = nil
		return
	}
	if wr.Opcode != verbs.OpSend { // what was in the message has been read by then
		_, to := p.tables()
		peer := mem.Accessor{Domain: &p.peer.home().domain}
		if to.Load(peer, wr.RKey, wr.RemoteAddr, nil, mem.RemoteWrite) != mem.OK {
			p.late = nil
			p.peer.kill() // a key that is out of use
			return
		}
	}
	p.pass(wr)
}

// checkFence tests, when an end says RESUME, that it takes nothing more from the rails before. One
// that was given up may arrive later, when there is another rail again.
func (p *pipe) checkFence(wr *verbs.SendWR) {
	if wr.Opcode != verbs.OpSend {
		return
	}
	if m, err := ParseControl(wr.Inline); err != nil || m.Type != TypeResume {
		return
	}
	for _, q := range p.from.world.pipes {
		if q.conn == p.conn && q != p && q.rail.ordered && (!q.dead || len(q.peer.came) > 0) {
			panic("RESUME before the rail that was lost is fenced")
		}
	}
}
