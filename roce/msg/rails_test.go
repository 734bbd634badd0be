package msg

import (
	"errors"
	"fmt"
	"testing"

	"xroce/roce/clock"
)

// railed is two nodes with adapters that a connection of several rails joins.
type railed struct {
	*world
	a, b   *node
	ca, cb *Conn
}

var session = Token{1, 2, 3}

// newRailed joins two nodes by as many rails as they have adapters.
func newRailed(t *testing.T, seed uint64, caps Capabilities, a, b Config) *railed {
	t.Helper()
	w := newWorld(t, seed)
	x := &railed{world: w, a: w.node(a), b: w.node(b)}
	x.ca, x.cb = w.joinWith(x.a, x.b, x.hello(x.a, 0, caps), x.hello(x.b, 0, caps))
	x.dial()
	return x
}

// hello is what a node says by one of its rails. The first node dials.
func (x *railed) hello(n *node, rail uint8, caps Capabilities) *Hello {
	h := n.hello(caps | CapabilityRails)
	h.Rail, h.Rails = rail, uint8(n.endpoint.config.Rails)
	if n == x.b {
		h.Session = session
	}
	return h
}

// dial makes the rails anew that the first node has not, and returns how many.
func (x *railed) dial() (n int) {
	x.world.t.Helper()
	have := [MaxRails]bool{}
	for r := range x.ca.live() {
		have[r.ours] = true
	}
	for i := range uint8(x.a.endpoint.config.Rails) {
		if have[i] || x.ca.over() || x.cb.over() {
			continue
		}
		ha := x.hello(x.a, i, allCapabilities)
		hb := x.hello(x.b, i%uint8(x.b.endpoint.config.Rails), allCapabilities)
		rb, err := x.cb.AddRail(x.now, hb, ha, 16)
		if errors.Is(err, ErrFlood) {
			continue
		}
		must(x.world.t, err)
		ra, err := x.ca.AddRail(x.now, ha, hb, 16)
		if errors.Is(err, ErrFlood) {
			rb.Lose(x.now, errHungUp)
			continue
		}
		must(x.world.t, err)
		x.lay(ra, rb, x.a, x.b)
		ra.Start(x.now)
		rb.Start(x.now)
		n++
	}
	return n
}

// cut has nothing pass any more by one of the rails that are in use, drawn.
func (x *railed) cut() {
	var live []*pipe
	for _, p := range x.pipes {
		if p.from == x.a && !p.cut && !p.rail.lost {
			live = append(live, p)
		}
	}
	if len(live) > 0 {
		p := live[x.rand.IntN(len(live))]
		p.cut, p.peer.cut = true, true
	}
}

// TestRailsModel is TestModel over several rails, which are cut and dialled again all the time:
// what was sent is received once, whole, in its order, and no level is told too early.
func TestRailsModel(t *testing.T) {
	var total CounterSet
	// A RESUME that was given up arrives when there is another rail again.
	railsRun(t, 1795379568759246242, &total)
	for seed := *firstSeed; seed < *firstSeed+150 && !t.Failed(); seed++ {
		railsRun(t, seed, &total)
	}
	for _, id := range []CounterID{RailsLost, Resumed, SentAgain, ChunksAgain} {
		t.Logf("%v: %d", id, total[id])
		if total[id] == 0 {
			t.Errorf("%v: it never happens", id)
		}
	}
}

func railsRun(t *testing.T, seed uint64, total *CounterSet) {
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, p))
		}
	}()
	r := newWorld(t, seed^1).rand
	config := func() Config {
		return Config{
			Rails: 1 + r.IntN(3), Grace: 1000 * clock.Second,
			Slots: 2 + r.IntN(6), Mode: Mode(r.IntN(int(modeCount))),
			Policy: Policy(r.IntN(int(policyCount))), After: 3,
			Unexpected: 1 << r.IntN(20),
			Rendezvous: 1 + r.IntN(4), PullWindow: 5000, Chunk: 2000,
			Keepalive: clock.Second, LargeSlots: 1 + r.IntN(3),
		}
	}
	ca, cb := config(), config()
	ca.Rails = max(ca.Rails, 2)
	x := newRailed(t, seed, allCapabilities&^Capabilities(r.IntN(8)), ca, cb)
	x.stingy = r.IntN(3) * 10
	m := newModel(t, x.world, seed, x.ca, x.cb)
	for range 900 {
		y := m.ways[x.rand.IntN(2)]
		switch x.rand.IntN(20) {
		case 0, 1:
			if len(y.sends) < 40 {
				m.send(y, drawSend(x.world))
			}
		case 2, 3:
			if len(y.receives) < 40 {
				size := x.rand.IntN(1 << (4 + x.rand.IntN(15)))
				m.receive(y, &Receive{Pieces: [][]byte{make([]byte, size)}})
			}
		case 4:
			if n := len(y.sends); n > 0 {
				y.from.endpoint.CancelSend(x.now, &y.sends[x.rand.IntN(n)].Send)
				m.check()
			}
		case 5:
			_ = y.from.Renew(2 + x.rand.IntN(8))
		case 6:
			if x.rand.IntN(3) == 0 {
				x.cut()
			}
		case 7:
			x.dial()
		default:
			x.step()
			m.check()
		}
	}
	x.mend(m)
	if x.ca.Err() != nil || x.cb.Err() != nil {
		t.Fatalf("seed %d: over: %v, %v", seed, x.ca.Err(), x.cb.Err())
	}
	m.finish()
	for _, c := range []*Conn{x.ca, x.cb} {
		c.Close(x.now)
	}
	for x.step() {
		m.check()
	}
	if !errors.Is(x.ca.Err(), ErrClosed) || !errors.Is(x.cb.Err(), ErrClosed) {
		t.Fatalf("seed %d: closed: %v, %v", seed, x.ca.Err(), x.cb.Err())
	}
	x.nothingLeft()
	for _, n := range x.nodes {
		for id, v := range n.endpoint.Snapshot() {
			total[id] += v
		}
	}
}

// mend goes on until every rail that was cut is noticed and dialled again.
func (x *railed) mend(m *model) {
	for {
		for x.step() {
			m.check()
		}
		for _, p := range x.pipes {
			if p.cut && !p.rail.lost && p.from == x.a { // nobody has used it since
				p.rail.Lose(x.now, errHungUp)
			}
			if p.cut && !p.rail.lost && !p.peer.over && p.from == x.b {
				p.rail.Lose(x.now, errHungUp)
			}
		}
		if x.dial() == 0 && !x.step() {
			return
		}
	}
}

// TestRailThatThePeerHasNot: the token of a session is for the rails that the peer has said it has,
// and for its service. Others are refused before anything is made for them, and counted.
func TestRailThatThePeerHasNot(t *testing.T) {
	c := Config{Rails: 2}
	x := newRailed(t, 1, allCapabilities, c, c)
	x.settle()
	for _, test := range []struct {
		change func(h *Hello)
		want   error
	}{
		{func(h *Hello) {}, nil},
		{func(h *Hello) { h.Rail = 2 }, ErrRails},
		{func(h *Hello) { h.Service = ServiceStream }, ErrSession},
		{func(h *Hello) { h.Session[0]++ }, ErrSession},
	} {
		h := x.hello(x.a, 1, allCapabilities)
		h.Session = session
		test.change(h)
		before := x.b.endpoint.Snapshot()[RailsRefused]
		found, err := x.b.endpoint.Session(h)
		refused := x.b.endpoint.Snapshot()[RailsRefused] - before
		if !errors.Is(err, test.want) || (found == x.cb) != (err == nil) ||
			(refused == 1) != (err != nil) {
			t.Errorf("%v: %v, %d are counted", h, err, refused)
		}
	}
}
