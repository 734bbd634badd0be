package tunnel

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xroce/encap/bridge"
	"xroce/roce/clock"
	rcm "xroce/roce/cm"
)

// Peers that are not named are learned: whoever asks from an address in a prefix. Nothing is held
// for one who only asks, because his address may be another's: he is refused with a cookie, which
// goes to that address, and which he has to ask with again (as in RFC 6347 4.2.1). Then he gets a
// place, if there is one, and is looked for at his address. Nothing is sent to him before he has
// answered there. Nobody else loses his place for him.

// Defaults of learning, and how long whoever has a place may take to answer.
const (
	DefaultLearned   = 16
	DefaultLearnIdle = time.Minute
	proofTime        = 2 * seekTime
)

// cookieAge is how long a cookie is the newest one; one more is taken.
const cookieAge = 2 * 60 * clock.Second

// cookieLen fits behind a sealed request of a connection.
const cookieLen = 4

// learning is what a tunnel knows of peers that are not named.
type learning struct {
	prefixes []netip.Prefix
	secret   [sha256.Size]byte // of cookies

	mu      sync.Mutex      // of changes of the roster
	running context.Context // of Run, nil while that does not run

	learned, forgotten atomic.Uint64
}

func newLearning(prefixes []netip.Prefix) *learning {
	l := &learning{prefixes: prefixes}
	rand.Read(l.secret[:]) // never fails
	return l
}

// Reasons why whoever asks is not learned.
var (
	errCookie = errors.New("tunnel: the peer wants a proof of our address")
	errRoom   = errors.New("tunnel: the peer has no room for one more")
)

// covers reports whether an address may be learned.
func (l *learning) covers(a netip.Addr) bool {
	return slices.ContainsFunc(l.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// cookie is that of an address in an epoch, never 0.
func (l *learning) cookie(a netip.Addr, epoch int64) uint32 {
	mac := hmac.New(sha256.New, l.secret[:])
	ip := a.As16()
	mac.Write(binary.BigEndian.AppendUint64(ip[:], uint64(epoch)))
	return max(binary.BigEndian.Uint32(mac.Sum(nil)), 1)
}

// proves reports whether a cookie is one that was sent to an address lately.
func (l *learning) proves(now clock.Time, a netip.Addr, cookie uint32) bool {
	epoch := int64(now / cookieAge)
	return cookie == l.cookie(a, epoch) || cookie == l.cookie(a, epoch-1)
}

// cookieOf is the cookie at an offset of private data, 0 for none.
func cookieOf(private []byte, at int) uint32 {
	if len(private) < at+cookieLen {
		return 0
	}
	return binary.BigEndian.Uint32(private[at:])
}

// refusal is what whoever is not admitted is told.
func (t *Tunnel) refusal(to netip.Addr, err error) []byte {
	h := t.hello
	if errors.Is(err, errRoom) {
		h.flags |= helloFull
	}
	b := h.put()
	if errors.Is(err, errCookie) {
		to = to.Unmap().WithZone("")
		cookie := t.learning.cookie(to, int64(t.dev.Now()/cookieAge))
		b = binary.BigEndian.AppendUint32(b, cookie)
	}
	return b
}

// prove is nil when who asks hears what is sent to his address: he has the cookie that was sent
// there, by this process and not long ago. With a key peers that are named are asked for that, too:
// so what was recorded of one is of no use later, nor at an end that was started again, and who
// has the address alone in what he sends costs no work with keys.
func (t *Tunnel) prove(c *counts, from netip.Addr, private []byte) error {
	if !t.learning.proves(t.dev.Now(), from, cookieOf(private, t.cookieOff())) {
		c.drop(dropCookie)
		return errCookie
	}
	return nil
}

// candidate is who asks from an address that is nobody's, if it is his and there is room: he is
// held by nobody before enroll.
func (t *Tunnel) candidate(from netip.Addr, via rcm.Via, private []byte) (*peer, error) {
	if err := t.prove(&t.counts, from, private); err != nil {
		return nil, err
	}
	p := newPeer(Peer{Addr: from}, bridge.Inside, len(t.inside.Queues))
	p.learned, p.station = true, via
	_, err := t.place(t.roster.Load(), p)
	return p, err
}

// place is where a candidate is to be put. Without a key a station on the link can hear what is
// sent to any address that nobody else has there, so it gets some of the places and not all.
func (t *Tunnel) place(r *roster, p *peer) (bridge.Port, error) {
	port := r.room()
	switch {
	case port == 0:
		t.counts.drop(dropRoom)
	case t.config.Key == nil && r.learnedFrom(p.station) >= t.config.perStation():
		t.counts.drop(dropStation)
	default:
		return port, nil
	}
	return 0, errRoom
}

// enroll gives a candidate a place and has him looked for. Others have theirs already.
func (t *Tunnel) enroll(p *peer) error {
	if p.port != bridge.Inside {
		return nil
	}
	l := t.learning
	l.mu.Lock()
	defer l.mu.Unlock()
	r := t.roster.Load()
	// Whoever asks twice at once, or before Run, asks again.
	if l.running == nil || r.byAddr[p.addr] != nil {
		t.counts.drop(dropRoom)
		return errRoom
	}
	port, err := t.place(r, p)
	if err != nil {
		return err
	}
	p.port = port
	t.roster.Store(r.with(port, p))
	l.learned.Add(1)
	t.config.Logger.Info("peer learned", "peer", p.addr.String())
	ctx := l.running
	t.running.Go(func() { t.attend(ctx, p) })
	return nil
}

// run has peers learned from now on.
func (l *learning) run(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = ctx
}

// end has nobody learned any more, so that nothing begins that Run would have to wait for.
func (l *learning) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = nil
}

// attend looks for a peer that was learned until it has been away for too long, and forgets it.
func (t *Tunnel) attend(ctx context.Context, p *peer) {
	seeking, cancel := context.WithCancel(ctx)
	defer cancel()
	var done sync.WaitGroup
	t.seek(seeking, &done, p)
	t.awaitAbsence(ctx, p)
	cancel()
	done.Wait()
	if ctx.Err() == nil {
		t.dismiss(p)
	}
}

// looks is how many looks there are in the time after which a peer is forgotten.
const looks = 4

// awaitAbsence returns when a peer was not there for the idle time, or never was.
func (t *Tunnel) awaitAbsence(ctx context.Context, p *peer) {
	idle := t.config.LearnIdle
	ticker := time.NewTicker(max(min(idle, proofTime)/looks, time.Millisecond))
	defer ticker.Stop()
	began := time.Now()
	for limit := min(idle, proofTime); time.Since(began) < limit; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if p.up() {
			began, limit = time.Now(), idle
		}
	}
}

// dismiss forgets a peer.
func (t *Tunnel) dismiss(p *peer) {
	t.bridge.Lock()
	p.gone.Store(true)
	t.forgetAddresses(p)
	t.bridge.Unlock()
	t.suppression.forget(p.port)
	l := t.learning
	l.mu.Lock()
	t.roster.Store(t.roster.Load().with(p.port, nil))
	l.mu.Unlock()
	t.in.dismiss(p)
	l.forgotten.Add(1)
	t.config.Logger.Info("peer forgotten", "peer", p.addr.String())
}
