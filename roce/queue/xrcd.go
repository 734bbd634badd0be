package queue

import (
	"fmt"
	"sync"

	"xroce/roce/verbs"
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
		return fmt.Errorf("%w: an SRQ for XRC needs a CQ", verbs.ErrInvalid)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.xrcd != nil || x.srqs[s.Num()] != nil {
		return fmt.Errorf("%w: SRQ 0x%06x is in an XRC domain", verbs.ErrInvalid, s.Num())
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

// Find returns the SRQ with a number, nil when the domain has none.
func (x *XRCD) Find(srqn uint32) *SRQ {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.srqs[srqn]
}

// Purge takes the completions of a QP out of all CQs of the domain.
func (x *XRCD) Purge(qpn uint32) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.srqs {
		s.cq.Purge(qpn)
	}
}
