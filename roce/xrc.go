package roce

import (
	"fmt"
	"sync"

	"xroce/roce/wire"
)

// An XRCD is an XRC domain: the shared receive queues that every XRC_RECV of it
// may use (IBA annex A14). It is safe for concurrent use.
type XRCD struct {
	mu   sync.RWMutex
	srqs map[uint32]*SRQ
}

// NewXRCD returns an empty domain.
func NewXRCD() *XRCD { return &XRCD{srqs: map[uint32]*SRQ{}} }

// Add makes an SRQ reachable for the peers of the domain, under its number. Its
// completions go to cq, with the number of the XRC_RECV that took the receive.
func (x *XRCD) Add(s *SRQ, cq *CQ) error {
	if cq == nil {
		return fmt.Errorf("%w: an SRQ for XRC needs a CQ", ErrInvalid)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.xrcd != nil || x.srqs[s.Num()] != nil {
		return fmt.Errorf("%w: SRQ 0x%06x is in an XRC domain", ErrInvalid, s.Num())
	}
	s.xrcd, s.cq = x, cq
	x.srqs[s.Num()] = s
	return nil
}

// Remove takes an SRQ out of reach.
func (x *XRCD) Remove(s *SRQ) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.srqs, s.Num())
}

// find returns the SRQ with a number, nil when the domain has none.
func (x *XRCD) find(srqn uint32) *SRQ {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.srqs[srqn]
}

// purge takes the completions of a QP out of all CQs of the domain.
func (x *XRCD) purge(qpn uint32) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.srqs {
		s.cq.purge(qpn)
	}
}

// findSRQ finds the shared receive queue of an XRC request. One message has one.
func (q *QP) findSRQ(p *wire.Packet) bool {
	srq := q.xrcd.find(p.XRCETH().SRQN)
	if srq == nil || (q.rsp.kind != msgNone && srq != q.srq) {
		return false
	}
	if q.rsp.held && srq != q.srq {
		return false
	}
	if q.srq != nil && srq != q.srq {
		q.srq.cq.land() // what comes now comes after it
	}
	q.srq = srq
	return true
}
