package cm_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

var (
	simSeed  = flag.Uint64("seed", 0, "run only this seed of TestSim")
	simSeeds = flag.Int("seeds", 2000, "number of seeds of TestSim")
)

// TestSim lets two hosts connect to each other over a wire that loses, repeats and
// reorders, with applications that take their time, refuse and give up. Then the
// wire is good and everybody hangs up: nothing may be left, and both ends must
// have seen the same. A seed is a whole run.
func TestSim(t *testing.T) {
	if *simSeed != 0 {
		newSim(t, *simSeed).run()
		return
	}
	n := *simSeeds
	if testing.Short() {
		n /= 10
	}
	var all [2]int
	for seed := uint64(1); seed <= uint64(n) && !t.Failed(); seed++ {
		s := newSim(t, seed)
		s.run()
		all[0] += s.tried
		all[1] += s.established
	}
	// Most seeds have hardly any loss, so most connections are made.
	if all[1] < all[0]/3 {
		t.Errorf("%d of %d connections were established", all[1], all[0])
	}
}

// A sim is two hosts, what flies between them and what their programs are about
// to do.
type sim struct {
	t     *testing.T
	seed  uint64
	rand  *rand.Rand
	now   clock.Time
	hosts [2]*simHost
	todo  []simTask
	tags  map[uint64]*simPair
	quiet bool // the wire is good
	calm  bool // the programs do what they should
	loss  float64
	dup   float64
	delay clock.Time

	tried, established int
}

// A simTask happens at a time.
type simTask struct {
	at clock.Time
	do func()
}

// A simHost is a machine and what its program knows.
type simHost struct {
	*sim
	m     *cm.Machine
	path  cm.Path
	ends  map[cm.ID]*simEnd
	known map[cm.ID]bool // IDs of lookups
	qpn   uint32
}

// A simEnd is one end of a connection as its program sees it.
type simEnd struct {
	pair   *simPair
	active bool
	qpn    uint32
	psn    wire.PSN
	params cm.QPParams
	// What happened.
	responded, accepted, ready, established, over, gone bool

	alone bool // over without the peer's word
}

// A simPair is both ends of what one Connect began. Duplicates may make more than
// one passive end.
type simPair struct {
	active  *simEnd
	passive []*simEnd
}

func newSim(t *testing.T, seed uint64) *sim {
	t.Helper()
	s := &sim{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 7)), tags: map[uint64]*simPair{},
	}
	r := s.rand
	s.loss = []float64{0, 0, 0.02, 0.2, 0.5, 0.9}[r.IntN(6)]
	s.dup = []float64{0, 0.1, 0.5}[r.IntN(3)]
	s.delay = []clock.Time{clock.Microsecond, clock.Second, 8 * clock.Second}[r.IntN(3)]
	gids := [2]wire.GID{
		wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}
	if r.IntN(2) == 0 {
		gids[0] = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::1"))
		gids[1] = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::2"))
	}
	for i := range s.hosts {
		m, err := cm.New(cm.Config{
			Rand: rand.NewPCG(seed, uint64(100+i)), CAGUID: uint64(i) + 1,
			MaxRetries: uint8(1 + r.IntN(15)), MaxHalfOpen: []int{3, 256}[r.IntN(2)],
		})
		must(t, err)
		s.hosts[i] = &simHost{
			sim: s, m: m, path: cm.Path{Local: gids[i], Remote: gids[1-i]},
			ends: map[cm.ID]*simEnd{}, known: map[cm.ID]bool{}, qpn: 0x100,
		}
		_, err1 := m.Listen(cm.Listen{Service: service, Backlog: 1 + r.IntN(20)})
		_, err2 := m.Listen(cm.Listen{Service: datagrams, Datagram: true})
		must(t, err1)
		must(t, err2)
	}
	return s
}

func (s *sim) failf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d: %s\n\tgo test ./roce/cm -run TestSim -seed=%d", s.seed,
		fmt.Sprintf(format, args...), s.seed)
}

// later lets something happen within a time from now.
func (s *sim) later(within clock.Time, do func()) {
	at := s.now
	if within > 0 {
		at += clock.Time(s.rand.Int64N(int64(within)))
	}
	s.todo = append(s.todo, simTask{at, do})
}

// step takes the next thing that happens and reports whether there was one.
func (s *sim) step() bool {
	next, host := -1, -1
	var at clock.Time
	for i := range s.todo {
		if next < 0 || s.todo[i].at < at {
			next, at = i, s.todo[i].at
		}
	}
	for i, h := range s.hosts {
		if d, ok := h.m.NextDeadline(); ok && (next < 0 && host < 0 || d < at) {
			host, at = i, d
		}
	}
	switch {
	case host >= 0:
		s.now = max(s.now, at)
		s.hosts[host].m.HandleDeadline(s.now)
	case next >= 0:
		s.now = max(s.now, at)
		do := s.todo[next].do
		s.todo[next] = s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		do()
	default:
		return false
	}
	for i := range s.hosts {
		s.progress(i)
	}
	return true
}

// progress sends what a host wants to send and tells its program what happened.
func (s *sim) progress(i int) {
	h := s.hosts[i]
	for e, ok := h.m.NextEvent(); ok; e, ok = h.m.NextEvent() {
		h.take(e)
	}
	for {
		mad := make([]byte, cm.MADLen)
		to, ok := h.m.NextMAD(mad)
		if !ok {
			return
		}
		if to.Remote != h.path.Remote || to.Local != h.path.Local {
			s.failf("host %d sends from %s to %s", i, to.Local, to.Remote)
		}
		copies := 1
		if !s.quiet {
			if s.rand.Float64() < s.loss {
				copies = 0
			} else if s.rand.Float64() < s.dup {
				copies = 2 + s.rand.IntN(3)
			}
		}
		peer := s.hosts[1-i]
		for range copies {
			delay := clock.Microsecond
			if !s.quiet {
				delay = s.delay
			}
			s.later(delay, func() {
				from := to
				from.Local, from.Remote = to.Remote, to.Local
				peer.m.HandleMAD(s.now, from, mad)
			})
		}
	}
}

// run is the life of one seed.
func (s *sim) run() {
	s.t.Helper()
	for _, h := range s.hosts {
		for range 1 + s.rand.IntN(12) {
			s.later(30*clock.Second, h.connect)
		}
		for range s.rand.IntN(4) {
			s.later(30*clock.Second, h.lookup)
		}
	}
	s.later(0, func() {}) // the first step
	s.until(func() bool { return s.now > 60*clock.Second })
	s.quiet, s.calm = true, true
	s.until(func() bool { return false })
	s.hangUp()
	s.last()
	s.check()
}

// until runs until a condition holds or nothing happens any more.
func (s *sim) until(stop func() bool) {
	const bound = 50_000
	for n := 0; !s.t.Failed() && !stop() && s.step(); n++ {
		if n > bound {
			s.failf("does not end: %+v and %+v", s.hosts[0].m.Usage(), s.hosts[1].m.Usage())
		}
	}
}

// hangUp lets the ends that connected hang up, and then those that are left: they
// may be only those whose peers could not tell them.
func (s *sim) hangUp() {
	for _, active := range []bool{true, false} {
		for _, h := range s.hosts {
			for _, id := range slices.Sorted(maps.Keys(h.ends)) {
				e := h.ends[id]
				if e.gone || e.active != active || e.over {
					continue
				}
				if !active && !(e.pair.active.alone || e.pair.active.over && !e.established) {
					s.failf("0x%x is in %s, its peer is gone: %+v", id, h.m.State(id),
						e.pair.active)
				}
				must(s.t, h.m.Disconnect(s.now, id, nil))
			}
			s.progress(0)
			s.progress(1)
		}
		s.until(func() bool { return false })
	}
}

// last makes one more connection, which nothing disturbs.
func (s *sim) last() {
	h := s.hosts[s.rand.IntN(2)]
	h.connect()
	s.progress(0)
	s.progress(1)
	s.until(func() bool { return false })
	pair := s.tags[uint64(s.tried)]
	if len(pair.passive) != 1 || !pair.active.ready || !pair.passive[0].established {
		s.failf("on a good wire: %+v, %+v", pair.active, pair.passive)
	}
	s.hangUp()
}

// check tests what must hold in the end.
func (s *sim) check() {
	for i, h := range s.hosts {
		usage := h.m.Usage()
		usage.Listeners = 0
		if at, armed := h.m.NextDeadline(); usage != (cm.Usage{}) || armed {
			s.failf("host %d still has %+v, deadline %v %d", i, usage, armed, at)
		}
		for id, e := range h.ends {
			if !e.gone {
				s.failf("host %d: 0x%x never ended", i, id)
			}
		}
		for id := range h.known {
			s.failf("host %d: lookup 0x%x never ended", i, id)
		}
	}
	for tag, p := range s.tags {
		s.checkPair(tag, p)
	}
}

// checkPair compares what the two ends of a connection saw.
func (s *sim) checkPair(tag uint64, p *simPair) {
	up := 0
	for _, e := range p.passive {
		if e.established {
			up++
			if !p.active.ready {
				s.failf("%d: established, but only for the passive end", tag)
			}
		}
	}
	if up > 1 {
		s.failf("%d: established %d times", tag, up)
	}
	if p.active.ready && up == 1 {
		s.established++
	}
	if !p.active.responded {
		return
	}
	// Who answered is one of those that accepted, and both know the same.
	for _, e := range p.passive {
		a, b := p.active.params, e.params
		if e.accepted && a.DestQPN == e.qpn {
			if b.DestQPN != p.active.qpn || a.SQPSN != e.psn || b.SQPSN != p.active.psn ||
				a.MaxRdAtomic != b.MaxDestRdAtomic || a.MaxDestRdAtomic != b.MaxRdAtomic ||
				a.PathMTU != b.PathMTU {
				s.failf("%d: the ends know %+v and %+v", tag, a, b)
			}
			return
		}
	}
	s.failf("%d: nobody gave that answer: %+v", tag, p.active)
}

// connect begins a connection.
func (h *simHost) connect() {
	h.tried++
	tag := uint64(h.tried)
	h.qpn++
	e := &simEnd{
		active: true, qpn: h.qpn, psn: wire.PSN(h.rand.Uint32() & 0xffffff),
		pair: new(simPair),
	}
	e.pair.active = e
	h.tags[tag] = e.pair
	id, err := h.m.Connect(h.now, cm.Connect{
		Path: h.path, Service: service, QPN: e.qpn, PSN: e.psn, PathMTU: wire.MTU2048,
		ResponderRes: uint8(h.rand.IntN(17)), InitiatorDepth: uint8(h.rand.IntN(17)),
		Private: binary.BigEndian.AppendUint64(nil, tag),
	})
	must(h.t, err)
	if h.ends[id] != nil {
		h.failf("ID 0x%x twice", id)
	}
	h.ends[id] = e
	if !h.calm && h.rand.IntN(8) == 0 {
		h.later(20*clock.Second, func() { _ = h.m.Disconnect(h.now, id, nil) })
	}
}

func (h *simHost) lookup() {
	id, err := h.m.Lookup(h.now, cm.Lookup{Path: h.path, Service: datagrams})
	must(h.t, err)
	h.known[id] = true
}

// take is what the program does when something happened.
func (h *simHost) take(ev cm.Event) {
	id := ev.ID
	e := h.ends[id]
	switch ev.Type {
	case cm.EventSIDRRequest:
		h.later(h.pause(), func() { _ = h.m.RespondSIDR(h.now, id, cm.SIDRResponse{QPN: 1}) })
		return
	case cm.EventSIDRResponse:
		h.endLookup(id)
		return
	case cm.EventConnectRequest:
		if e != nil {
			h.failf("a request under an ID that was there, 0x%x", id)
		}
		h.request(ev)
		return
	case cm.EventUnreachable:
		if e == nil {
			h.endLookup(id)
			return
		}
	}
	if e == nil || e.gone {
		h.failf("%s of 0x%x: %+v", ev.Type, id, e)
		return
	}
	switch ev.Type {
	case cm.EventConnectResponse:
		if !e.active || e.responded || e.over {
			h.failf("CONNECT_RESPONSE of %+v", e)
		}
		e.responded, e.params = true, ev.Params
		h.later(h.pause(), func() { h.respond(id, e) })
	case cm.EventEstablished:
		if e.active || !e.accepted || e.established || e.over {
			h.failf("ESTABLISHED of %+v", e)
		}
		e.established = true
		h.maybeLeave(id)
	case cm.EventRejected, cm.EventUnreachable, cm.EventDisconnected:
		if e.over {
			h.failf("%s of %+v", ev.Type, e)
		}
		e.over = true
		e.alone = ev.Type == cm.EventDisconnected && ev.Private == nil
	case cm.EventTimewaitExit:
		e.gone, e.over = true, true
	}
}

// endLookup notes the one end of a lookup. Those of the peer end without a note.
func (h *simHost) endLookup(id cm.ID) { delete(h.known, id) }

// pause is how long a program thinks.
func (h *simHost) pause() clock.Time {
	if h.calm || h.rand.IntN(2) == 0 {
		return 0
	}
	return 15 * clock.Second
}

// request decides on a request.
func (h *simHost) request(ev cm.Event) {
	pair := h.tags[binary.BigEndian.Uint64(ev.Private)]
	h.qpn++
	e := &simEnd{
		qpn: h.qpn, psn: wire.PSN(h.rand.Uint32() & 0xffffff), pair: pair,
		params: ev.Params,
	}
	pair.passive = append(pair.passive, e)
	h.ends[ev.ID] = e
	choice := h.rand.IntN(10)
	switch {
	case choice == 0 && !h.calm: // never answers
	case choice == 1 && !h.calm:
		h.later(h.pause(), func() {
			_ = h.m.Reject(h.now, ev.ID, cm.ReasonConsumer, nil, nil)
		})
	default:
		h.later(h.pause(), func() {
			p := &e.params
			err := h.m.Accept(h.now, ev.ID, cm.Accept{
				QPN: e.qpn, PSN: e.psn, ResponderRes: p.MaxDestRdAtomic,
				InitiatorDepth: p.MaxRdAtomic,
			})
			e.accepted = err == nil
		})
	}
}

// respond decides on the answer to a request.
func (h *simHost) respond(id cm.ID, e *simEnd) {
	switch choice := h.rand.IntN(10); {
	case choice == 0 && !h.calm:
		_ = h.m.Reject(h.now, id, cm.ReasonConsumer, nil, nil)
	case choice == 1 && !h.calm:
		_ = h.m.Disconnect(h.now, id, nil)
	default:
		e.ready = h.m.Establish(id, nil) == nil
		h.maybeLeave(id)
	}
}

// maybeLeave hangs up some time later, or not.
func (h *simHost) maybeLeave(id cm.ID) {
	if !h.calm && h.rand.IntN(2) == 0 {
		h.later(30*clock.Second, func() { _ = h.m.Disconnect(h.now, id, nil) })
	}
}
