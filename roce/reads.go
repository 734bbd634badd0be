package roce

import (
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A readResource remembers a READ, so that its answer can be given again, and
// the answer that is under way.
type readResource struct {
	first, last wire.PSN
	va          uint64
	rkey        uint32
	length      uint32
	valid       bool

	queued     bool     // an answer is in the queue
	start, cur wire.PSN // its first response, the next one to send
	stop       wire.PSN // its last response
	end        uint32   // the byte behind it, counted from va
}

// answer prepares an answer of n bytes from psn on.
func (r *readResource) answer(psn wire.PSN, off, n, pmtu uint32) {
	r.queued, r.start, r.cur = true, psn, psn
	r.stop, r.end = psn.Add(responses(n, pmtu)-1), off+n
}

// responses is the number of response packets of a READ of n bytes.
func responses(n, pmtu uint32) uint32 { return max(1, (n+pmtu-1)/pmtu) }

// executeRead remembers a READ and queues its answer.
func (q *QP) executeRead(p *wire.Packet) (Step, wire.Syndrome) {
	s := &q.rsp
	reth := p.RETH()
	if q.attr.Access&mem.RemoteRead == 0 || len(s.reads) == 0 {
		return stepRights, wire.NAKInvalidRequest
	}
	res := &s.reads[s.nextRead]
	if res.queued {
		// The peer has more READs outstanding than it was told it may.
		return stepResources, wire.NAKInvalidRequest
	}
	if reth.DMALen > MaxMessage {
		return stepLength, wire.NAKInvalidRequest
	}
	if reth.DMALen > 0 && q.keys.Check(q.domain, reth.RKey, reth.VA, int(reth.DMALen),
		mem.RemoteRead) != mem.OK {
		return stepRKey, wire.NAKRemoteAccessError
	}
	packets := responses(reth.DMALen, q.pmtu)
	*res = readResource{
		first: s.psn, last: s.psn.Add(packets - 1), va: reth.VA, rkey: reth.RKey,
		length: reth.DMALen, valid: true,
	}
	res.answer(s.psn, 0, reth.DMALen, q.pmtu)
	s.msn = (s.msn + 1) & 0xffffff
	s.fifo.read(s.nextRead, s.psn, s.msn)
	s.nextRead = (s.nextRead + 1) % len(s.reads)
	s.psn, s.gap = s.psn.Add(packets), false
	return stepAdmitted, 0
}

// replayRead answers a READ again, from the PSN on that the peer asks for. The
// request must lie inside the remembered one (IBA 9.7.5.1.4).
func (q *QP) replayRead(p *wire.Packet) bool {
	s := &q.rsp
	psn, reth := p.BTH.PSN, p.RETH()
	if q.attr.Access&mem.RemoteRead == 0 {
		return false
	}
	for i := range s.reads {
		res := &s.reads[i]
		if !res.valid || !psn.InWindow(res.first, uint32(res.last.Sub(uint32(res.first)))+1) {
			continue
		}
		off := uint32(psn.Sub(uint32(res.first))) * q.pmtu
		if reth.RKey != res.rkey || reth.VA != res.va+uint64(off) ||
			reth.DMALen > res.length-off {
			return false
		}
		if !res.queued {
			s.fifo.replay(i, res.first, s.msn)
		}
		res.answer(psn, off, reth.DMALen, q.pmtu)
		return true
	}
	return false
}

// canRemember tells whether n resources are enough for every READ that is being
// answered: only the n newest are kept.
func (s *responder) canRemember(n int) bool {
	for age := n; age < len(s.reads); age++ {
		if s.newest(age).queued {
			return false
		}
	}
	return true
}

// newest returns a READ by age, the last one first.
func (s *responder) newest(age int) *readResource {
	return &s.reads[s.newestIndex(age)]
}

func (s *responder) newestIndex(age int) int {
	return (s.nextRead - 1 - age + 2*len(s.reads)) % len(s.reads)
}

// remember changes the number of resources to n, and keeps what fits.
func (s *responder) remember(n int) {
	kept := min(n, len(s.reads))
	reads, moved := make([]readResource, n), make([]int, len(s.reads))
	for age := range kept {
		reads[kept-1-age] = *s.newest(age)
		moved[s.newestIndex(age)] = kept - 1 - age
	}
	var fifo answerQueue
	fifo.init(n)
	for ; s.fifo.n > 0; s.fifo.pop() {
		a := *s.fifo.front()
		if a.isRead {
			a.resource = moved[a.resource]
		}
		fifo.push(a)
	}
	s.reads, s.fifo, s.nextRead = reads, fifo, 0
	if kept < n {
		s.nextRead = kept
	}
}
