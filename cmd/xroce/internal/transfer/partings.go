package transfer

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

// Partings are connections that are over and may hear why, each for a few seconds at most. Where
// many of one source wait for that, the oldest does not any more when another one begins: who
// connects again and again, and never hangs up, keeps nobody else from connecting, and neither
// those whose addresses only look like his. It is safe for concurrent use.
type Partings struct {
	PerSource int // that wait at once, of one source

	mu sync.Mutex
	of map[netip.Prefix][]*wait // the oldest first
}

// A wait is of one connection, until it is cut short.
type wait struct{ cut context.CancelFunc }

// Close hangs up on a peer from a source.
func (p *Partings) Close(l *Link, source netip.Prefix) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer p.begin(source, cancel)()
	l.close(ctx)
}

// begin takes note of a connection that waits until it has ended, or is cut short.
func (p *Partings) begin(source netip.Prefix, cut context.CancelFunc) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[netip.Prefix][]*wait{}
	}
	w := &wait{cut}
	all := append(p.of[source], w)
	if len(all) > p.PerSource {
		all[0].cut()
		all = slices.Delete(all, 0, 1)
	}
	p.of[source] = all
	return func() { p.end(source, w) }
}

func (p *Partings) end(source netip.Prefix, w *wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := slices.DeleteFunc(p.of[source], func(o *wait) bool { return o == w })
	if p.of[source] = left; len(left) == 0 {
		delete(p.of, source)
	}
}
