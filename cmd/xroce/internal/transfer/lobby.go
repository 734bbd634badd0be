package transfer

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"xroce/engine/crowd"
)

// ErrBusy says that a receiver has as many transfers as it wants at a time.
var ErrBusy = errors.New("the server is busy")

// errOthers says that somebody lost its place to others.
var errOthers = fmt.Errorf("%w: others came", ErrBusy)

// ErrSlow says that a transfer gave way to another one.
var ErrSlow = errors.New("too slow while others wait")

// A Lobby is where connections wait until they have said who they are and what they want. It has a
// bounded number of places and is never full: who comes when all are taken gets the place of one
// of the source that has most, so a stranger who opens many drives out his own. Those who are not
// connected yet may be anybody's invention, and have at most half of the places when others want
// them. The transfers that are admitted are bounded as well, and a slow one gives way when there
// are enough. It is safe for concurrent use.
type Lobby struct {
	Places    int   // for connections that wait
	Transfers int   // at a time
	PerSource int   // transfers of one source at a time, at most Transfers
	Slow      int64 // bytes a second, 0 to let no transfer give way

	now func() time.Time // for tests, may be nil

	mu       sync.Mutex
	waiting  []*Guest // the one that came first is first
	admitted []*Guest
	leaving  []*Guest // that gave way, and have not noticed yet
}

// A Guest is a connection in a lobby. Its methods are for one goroutine.
type Guest struct {
	lobby  *Lobby
	hangUp func(error) // says why; does not wait
	source netip.Prefix

	connected bool // it is there, at the address that it says
	admitted  bool
	gaveWay   bool
	whole     bool      // all has come
	since     time.Time // when it was admitted, later by its recesses
	done      int64     // bytes of this file
	pace      pace      // of all files since
	rest      recesses
}

// Enter gives a connection of a host a place, whose end does not wait and is told why. Leave
// must be called.
func (l *Lobby) Enter(source netip.Prefix, hangUp func(error)) *Guest {
	g := &Guest{lobby: l, hangUp: hangUp, source: source}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, g)
	if len(l.waiting) > l.Places {
		l.evict()
	}
	return g
}

// evict hangs up on who came first of the source that has most places: of those who are not
// connected if these have more than half of all, else of the others.
func (l *Lobby) evict() {
	strangers := 0
	for _, g := range l.waiting {
		if !g.connected {
			strangers++
		}
	}
	i := crowd.GivesWay(l.waiting, func(g *Guest) (netip.Prefix, bool) {
		return g.source, g.connected != (strangers > l.Places/2)
	})
	l.waiting[i].hangUp(errOthers)
	l.waiting = slices.Delete(l.waiting, i, i+1)
}

// Connected takes note that the guest is where it says that it is.
func (g *Guest) Connected() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.connected = true
}

// Admit makes a guest one that has a transfer, or begins the next of one that has. ErrBusy
// says that there are enough.
func (g *Guest) Admit() error {
	l := g.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case g.gaveWay:
		return ErrSlow
	case g.admitted:
		g.next()
		return nil
	}
	i := slices.Index(l.waiting, g)
	same := func(other *Guest) bool { return other.source == g.source }
	all := func(*Guest) bool { return true }
	switch {
	case i < 0:
		return errOthers
	case l.count(same) >= l.PerSource && !l.giveWay(same):
		return fmt.Errorf("%w: %s has %d transfers, try again later", ErrBusy, g.source,
			l.PerSource)
	case len(l.admitted) >= l.Transfers && !l.giveWay(all):
		return fmt.Errorf("%w: it has %d transfers, try again later", ErrBusy, l.Transfers)
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.admitted = append(l.admitted, g)
	g.admitted, g.since = true, l.time()
	g.pace.begin(g.since)
	return nil
}

// count is how many transfers there are of some sources.
func (l *Lobby) count(of func(*Guest) bool) (n int) {
	for _, g := range l.admitted {
		if of(g) {
			n++
		}
	}
	return n
}

// slowGrace is how long a transfer may be slow before it gives way.
const slowGrace = 5 * time.Second

// young reports whether a guest has been there for so short a time that it may be slow.
func (g *Guest) young(now time.Time) bool { return g.pace.clock(now).Sub(g.since) <= slowGrace }

// giveWay hangs up on the slowest transfer of some sources, if it is slow, and reports
// whether there was one: who holds a place for nothing holds it from others. Those that
// wait for a disk which does not answer notice nothing, so there may be no more of them
// than there are transfers.
func (l *Lobby) giveWay(of func(*Guest) bool) bool {
	if len(l.leaving) >= l.Transfers {
		return false
	}
	now := l.time()
	slowest, least := -1, float64(l.Slow)
	for i, g := range l.admitted {
		rate := g.pace.rate(now)
		if of(g) && !g.whole && !g.young(now) && rate < least {
			slowest, least = i, rate
		}
	}
	if slowest < 0 {
		return false
	}
	l.admitted[slowest].gaveWay = true
	l.admitted[slowest].hangUp(ErrSlow)
	l.leaving = append(l.leaving, l.admitted[slowest])
	l.admitted = slices.Delete(l.admitted, slowest, slowest+1)
	return true
}

func (l *Lobby) time() time.Time {
	if l.now == nil {
		return time.Now()
	}
	return l.now()
}

// Progress takes note of how many bytes of a guest's file were received.
func (g *Guest) Progress(done, _ int64) {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.pace.add(g.lobby.time(), done-g.done)
	g.rest.repay(done - g.done)
	g.done = done
}

// Whole takes note that all of a guest's file has come: what is still to be done is for
// us, and it does not give way any more. ErrSlow says that it has given way before.
func (g *Guest) Whole() error {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	if g.gaveWay {
		return ErrSlow
	}
	g.whole = true
	g.pace.stop(g.lobby.time())
	return nil
}

// Ended takes note that all is done of a guest's file: what comes next is up to the guest again,
// who may be slow with that.
func (g *Guest) Ended() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.next()
}

// next is ready for another file. The caller holds mu.
func (g *Guest) next() {
	g.whole, g.done = false, 0
	g.pace.goOn(g.lobby.time())
	g.rest.next()
}

// A standing is whether a guest that holds something others need is to give way to them.
type standing int

const (
	stays    standing = iota // for as long as it goes on so
	young                    // it may turn out to be slow
	slowNow                  // it gives way
	departed                 // it gave way, and has not noticed yet
)

// standing judges a guest, that may be nil for one that never gives way.
func (g *Guest) standing() standing {
	if g == nil {
		return stays
	}
	l := g.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.time()
	switch {
	case g.gaveWay:
		return departed
	case l.Slow == 0 || g.whole || !g.admitted:
		return stays
	case g.young(now):
		return young
	case g.pace.rate(now) < float64(l.Slow):
		return slowNow
	}
	return stays
}

// giveWay hangs up on a guest if it is slow, and reports whether it was.
func (g *Guest) giveWay() bool {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	return g.lobby.giveWay(func(other *Guest) bool { return other == g })
}

// Admitted reports whether the guest got a transfer.
func (g *Guest) Admitted() bool {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	return g.admitted
}

// Leave gives back what the guest has.
func (g *Guest) Leave() {
	l := g.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	same := func(other *Guest) bool { return other == g }
	l.waiting = slices.DeleteFunc(l.waiting, same)
	l.admitted = slices.DeleteFunc(l.admitted, same)
	l.leaving = slices.DeleteFunc(l.leaving, same)
}
