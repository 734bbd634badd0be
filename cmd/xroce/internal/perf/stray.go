package perf

import (
	"fmt"

	"xroce/roce"
	"xroce/roce/wire"
)

// Datagrams come from whoever sends some: the number of a queue pair, its Q_Key and a group are no
// secret. What is not of the peer's queue pair is a stray: it counts nowhere, and its receive is
// posted again. So is, with -a, a message of an earlier size that was given up for lost.

// peers are the numbers of the queue pairs that send to those of this end, 0 for one that is not
// known.
type peers struct {
	of  []uint32          // of each flow
	srq map[uint32]uint32 // of each queue pair, by its number: with a shared queue no flow is told
}

// nameMembers adds to what the peer is told of a member of a group the number that it sends with,
// in a field that is for XRC. In that of the number it tells, as the tool does, the one that a
// group is sent to. The tool is not told: who calls this knows that the peer is one of ours.
func (e *end) nameMembers() {
	for i := range e.local {
		if e.local[i].QPN == wire.MulticastQP {
			e.local[i].SRQN = e.flows[i].qp.QPN()
		}
	}
}

// findPeers finds out who sends, by what the peer has told of its queue pairs. The tool, and those
// of ours that are older, do not tell it of a member of a group.
func (e *end) findPeers() (p peers) {
	p.of = make([]uint32, len(e.flows))
	if e.srq != nil {
		p.srq = map[uint32]uint32{}
	}
	for i := range e.remote {
		p.of[i] = e.remote[i].QPN
		if p.of[i] == wire.MulticastQP {
			p.of[i] = e.remote[i].SRQN
		}
		if e.srq != nil {
			p.srq[e.flows[i].qp.QPN()] = p.of[i]
		}
	}
	return p
}

// stray reports whether a receive took a datagram that is none of the peer's. Where that cannot be
// told, one of another length than all have is taken for one: else who sends it would end the test.
// With -a a message of another length is one of an earlier size, whoever sent it.
func (e *end) stray(wc *roce.Completion) bool {
	if e.cfg.All && e.cfg.Type != roce.TypeRC && wc.ByteLen != e.length {
		return true
	}
	if e.cfg.Type != roce.TypeUD {
		return false
	}
	from := e.peers.of[wridQP(wc.WRID)]
	if e.srq != nil {
		from = e.peers.srq[wc.QPN]
	}
	if from != 0 {
		return wc.SrcQP != from
	}
	return wc.ByteLen != e.length
}

// takeStrays returns how many there were since it was called last.
func (e *end) takeStrays() (n uint64) {
	n, e.strays = e.strays, 0
	return n
}

// withStrays adds to why a run failed that there were strays, if there were.
func (e *end) withStrays(err error) error {
	if e.strays == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strays(e.strays))
}

// strays says how many messages do not count.
func strays(n uint64) string {
	return fmt.Sprintf("messages that came and do not count, of another queue pair than the "+
		"peer's or of another length: %d", n)
}
