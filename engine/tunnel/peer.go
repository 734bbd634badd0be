package tunnel

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"xroce/encap"
	"xroce/encap/bridge"
	"xroce/encap/seal"
	"xroce/engine"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// A way is how one lane reaches a peer.
type way struct {
	instance  uint64        // of the peer's process
	failed    chan struct{} // has something when work has failed
	qp        *engine.QP
	ah        *roce.AH // UD
	qpn, qkey uint32   // UD
	route     *engine.NativeRoute
	classes   [256]*roce.AH // the same way, by traffic class; of the lane
	template  encap.Template
	sealer    *seal.Sealer // nil without a key
	largest   int          // longest datagram that the peer takes
	mtu       int          // longest IP packet that both insides take, and there is room for
	whole     bool         // it takes packets of TCP that are not cut

	inHand atomic.Bool  // the lane has something for it that may not be posted yet
	posted atomic.Int32 // work requests that are not complete; changed by the lane
	gone   atomic.Bool  // the queue pair was closed
}

// inUse reports whether something that was sent by the way, or is about to be, may not have
// arrived. One that was replaced is in use no more once it was not.
func (w *way) inUse() bool {
	return w.inHand.Load() || w.posted.Load() > 0 // in this order: what is in hand is posted then
}

// newWay makes a way of what a peer said.
func (t *Tunnel) newWay(qp *engine.QP, their *hello) *way {
	w := &way{
		instance: their.instance, failed: make(chan struct{}, 1), qp: qp,
		template: t.template(), mtu: t.inside.MTU, whole: their.flags&helloWhole != 0,
	}
	w.largest = int(min(their.largest, uint32(w.template.Largest(t.kind()))))
	if their.mtu >= minMTU { // else it says none
		w.mtu = min(w.mtu, int(their.mtu))
	}
	// Both insides may take more than there is room for, once an MTU outside was lowered.
	if room := t.inside.Kind.within(w.largest); room >= minMTU {
		w.mtu = min(w.mtu, room)
	}
	return w
}

// handle is the address handle for datagrams of a traffic class.
func (w *way) handle(pd *engine.PD, class uint8) *roce.AH {
	if w.ah == nil || class == w.ah.Path().TClass {
		return w.ah
	}
	if w.classes[class] == nil {
		path := w.ah.Path()
		path.TClass = class
		ah, err := pd.NewAH(path)
		if err != nil {
			return w.ah // the mark is less than the datagram
		}
		w.classes[class] = ah
	}
	return w.classes[class]
}

// A peer is the other end.
type peer struct {
	addr    netip.Addr
	port    bridge.Port           // Inside while it has no place
	learned bool                  // not named
	station rcm.Via               // that it asked from, of one that was learned
	gone    atomic.Bool           // forgotten, set with the lock of the bridge
	narrow  atomic.Bool           // the path loses packets above the path MTU
	cookie  atomic.Uint32         // proof of our address that it gave us, 0 for none
	ways    []atomic.Pointer[way] // by lane, nil while there is none
	// hints tell those who seek, one a lane, to look at once: the peer has just shown that it is
	// there, or that it began anew.
	hints    []chan struct{}
	instance atomic.Uint64 // of the peer's process, 0 while none is known
	incoming atomic.Int32  // connections on which it sends, and those that it asks for
	asking   sync.Mutex    // of who looks it up
	sessions sessions
	counts   counts
}

// newWays are none yet.
func newWays(lanes int) []atomic.Pointer[way] { return make([]atomic.Pointer[way], lanes) }

func newPeer(c Peer, port bridge.Port, lanes int) *peer {
	p := &peer{addr: c.Addr, port: port, ways: newWays(lanes)}
	for range lanes {
		p.hints = append(p.hints, make(chan struct{}, 1))
	}
	return p
}

// takeInHand is the way of a lane, nil for none, for which the lane has something in hand from then
// on: whoever replaces it sees that, or the lane sees the other one.
func (p *peer) takeInHand(lane int) *way {
	for {
		w := p.ways[lane].Load()
		if w == nil {
			return nil
		}
		if w.inHand.Store(true); p.ways[lane].Load() == w {
			return w
		}
		w.inHand.Store(false)
	}
}

// up reports whether there is a way for every lane.
func (p *peer) up() bool {
	for i := range p.ways {
		if p.ways[i].Load() == nil {
			return false
		}
	}
	return true
}

// wake has the peer looked for at once.
func (p *peer) wake() {
	for _, hint := range p.hints {
		signal(hint)
	}
}

// signal puts something into a channel with room for one, unless it is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// How long it takes to look for a peer, and how long to wait before it is looked for again.
const (
	seekTime       = 5 * time.Second
	seekPause      = 250 * time.Millisecond
	seekPauseTo    = 5 * time.Second
	defaultRefresh = 10 * time.Second // of a peer over UD or UC, which says nothing when it goes
	soonest        = 100 * time.Millisecond
)

// pause waits, for a hint not shorter than soonest. It reports false when the context ended.
func (p *peer) pause(ctx context.Context, lane int, d time.Duration) bool {
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	timer.Reset(max(d-soonest, 0))
	select {
	case <-timer.C:
	case <-p.hints[lane]:
	case <-ctx.Done():
		return false
	}
	return true
}

// told logs once what keeps a peer from being found, and again when that is something else.
type told struct{ last string }

func (o *told) tell(t *Tunnel, p *peer, err error) {
	var mismatch *MismatchError
	switch text := err.Error(); {
	case text == o.last:
	case errors.As(err, &mismatch), errors.Is(err, errNoHello), errors.Is(err, ErrKey):
		t.config.Logger.Warn("peer does not fit", "peer", p.addr.String(), "error", text)
		o.last = text
	default:
		t.config.Logger.Info("peer not found yet", "peer", p.addr.String(), "error", text)
		o.last = text
	}
}
