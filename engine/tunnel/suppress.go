package tunnel

import (
	"sync"

	"xroce/encap/bridge"
	"xroce/encap/inner"
	"xroce/roce/clock"
)

// suppression answers questions of ARP and neighbour discovery from inside, for hosts at peers
// that said lately who they are, so that they need not go to all.
type suppression struct {
	mu       sync.Mutex
	known    *bridge.Neighbours
	answered uint64
}

func (t *Tunnel) newSuppression() (err error) {
	c := &t.config
	if !c.Suppress {
		return nil
	}
	t.suppression = &suppression{}
	t.suppression.known, err = bridge.NewNeighbours(bridge.Config{
		Size: c.Addresses, Ports: c.mostPeers() + 1, Age: clock.Time(c.Age),
	})
	return err
}

// hear notes what the sender of a frame says of himself.
func (s *suppression) hear(now clock.Time, h *inner.Headers, b []byte, port bridge.Port) {
	if s == nil {
		return
	}
	a, mac, router, ok := h.Says(b)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Learn(now, bridge.Neighbour{Addr: a, MAC: mac, Router: router}, port)
}

// find returns who has the address that a frame asks for.
func (s *suppression) find(
	now clock.Time, h *inner.Headers, b []byte,
) (bridge.Neighbour, bridge.Port, bool) {
	target, ok := h.Asks(b)
	if !ok {
		return bridge.Neighbour{}, 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Find(now, target)
}

// forget drops what a peer said.
func (s *suppression) forget(port bridge.Port) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Forget(port)
}

// suppress answers a frame from inside that asks for somebody who is known to be at a peer that
// is there, and reports whether it did: the frame goes nowhere then.
func (l *lane) suppress(d *datagram) bool {
	t, s := l.t, l.t.suppression
	if s == nil || d.b[0]&1 == 0 {
		return false
	}
	now := t.dev.Now()
	s.hear(now, &d.head, d.b, bridge.Inside)
	who, port, ok := s.find(now, &d.head, d.b)
	if p := t.roster.Load().at(port); !ok || p == nil || p.ways[l.number].Load() == nil {
		return false
	}
	// The bridge must still have him there: he may have moved and said so with another frame.
	t.bridge.Lock()
	at, ok := t.table.Find(now, who.MAC)
	t.bridge.Unlock()
	if !ok || at != port {
		return false
	}
	n := d.head.Answer(l.tooBig[inner.VNetLen:], d.b, who.MAC, who.Router)
	inner.VNet{}.Put(l.tooBig)
	if _, err := l.queue.Write(l.tooBig[:inner.VNetLen+n]); err != nil {
		t.counts.drop(dropInside)
	}
	s.mu.Lock()
	s.answered++
	s.mu.Unlock()
	return true
}
