package match_test

import (
	"slices"
	"testing"

	"xroce/roce/msg/match"
)

// What a caller of the package would have.
type (
	matcher = match.Matcher[receive, message]
	peer    struct {
		node match.Peer[receive, message]
		name int
	}
	receive struct {
		node      match.Receive[receive, message]
		tag, mask uint64
		source    *peer // nil for any
	}
	message struct {
		node  match.Message[receive, message]
		from  *peer
		tag   uint64
		bytes uint32
	}
)

// A rig has a matcher beside a model of it: two slices in the order in which things
// came, searched from the beginning. What each call says is compared.
type rig struct {
	testing.TB
	x        *matcher
	peers    []*peer
	receives []*receive // that are queued
	messages []*message // that are unexpected
}

// newRig makes one with so many peers.
func newRig(tb testing.TB, peers int) *rig {
	tb.Helper()
	g := &rig{TB: tb, x: match.New[receive, message]([2]uint64{1, 2})}
	for i := range peers {
		p := &peer{name: i}
		g.must(g.x.Add(&p.node))
		g.peers = append(g.peers, p)
	}
	return g
}

func (g *rig) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// same fails unless a call returned what the model has.
func same[T any](g *rig, what string, got, want *T) {
	g.Helper()
	if got != want {
		g.Fatalf("%s: %+v, and not %+v", what, got, want)
	}
}

// match is the source as the package has it.
func (p *peer) match() *match.Peer[receive, message] {
	if p == nil {
		return nil
	}
	return &p.node
}

// fits is the rule.
func (r *receive) fits(m *message) bool {
	return r.tag&r.mask == m.tag&r.mask && (r.source == nil || r.source == m.from)
}

// take takes the first element that fits out of a slice, nil if there is none.
func take[T any](from *[]*T, fits func(*T) bool) *T {
	i := slices.IndexFunc(*from, fits)
	if i < 0 {
		return nil
	}
	found := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return found
}

// post posts a new receive and returns it, and the message that it got.
func (g *rig) post(tag, mask uint64, source *peer) (*receive, *message) {
	g.Helper()
	r := &receive{tag: tag, mask: mask, source: source}
	r.node.Init(r)
	want := take(&g.messages, r.fits)
	if want == nil {
		g.receives = append(g.receives, r)
	}
	got, err := g.x.Post(&r.node, tag, mask, source.match())
	g.must(err)
	same(g, "Post", got, want)
	g.counts()
	return r, got
}

// arrive lets a new message come and returns it, and the receive that got it. One of an odd number
// of bytes is queued only when nobody takes it.
func (g *rig) arrive(from *peer, tag uint64, bytes uint32) (*message, *receive) {
	g.Helper()
	m := &message{from: from, tag: tag, bytes: bytes}
	m.node.Init(m)
	want := take(&g.receives, func(r *receive) bool { return r.fits(m) })
	if want == nil {
		g.messages = append(g.messages, m)
	}
	var got *receive
	var err error
	if bytes%2 == 1 {
		got, err = g.x.Take(&from.node, tag)
		g.must(err)
		same(g, "Take", got, want)
	}
	if got == nil {
		got, err = g.x.Arrive(&m.node, &from.node, tag, bytes)
		g.must(err)
		same(g, "Arrive", got, want)
	}
	g.counts()
	return m, got
}

// cancel cancels a receive and returns whether it was queued.
func (g *rig) cancel(r *receive) bool {
	g.Helper()
	want := take(&g.receives, func(o *receive) bool { return o == r }) != nil
	if got := g.x.Cancel(&r.node); got != want {
		g.Fatalf("Cancel: %t", got)
	}
	g.counts()
	return want
}

// withdraw withdraws a message and returns whether it was unexpected.
func (g *rig) withdraw(m *message) bool {
	g.Helper()
	want := take(&g.messages, func(o *message) bool { return o == m }) != nil
	if got := g.x.Withdraw(&m.node); got != want {
		g.Fatalf("Withdraw: %t", got)
	}
	g.counts()
	return want
}

// probe probes and returns what it found.
func (g *rig) probe(tag, mask uint64, source *peer) *message {
	g.Helper()
	r := receive{tag: tag, mask: mask, source: source}
	var want *message
	if i := slices.IndexFunc(g.messages, r.fits); i >= 0 {
		want = g.messages[i]
	}
	same(g, "Probe", g.x.Probe(tag, mask, source.match()), want)
	g.counts()
	return want
}

// claim claims and returns what it got.
func (g *rig) claim(tag, mask uint64, source *peer) *message {
	g.Helper()
	r := receive{tag: tag, mask: mask, source: source}
	want := take(&g.messages, r.fits)
	same(g, "Claim", g.x.Claim(tag, mask, source.match()), want)
	g.counts()
	return want
}

// forget forgets a peer, or all that belongs to any, and returns what came of it.
func (g *rig) forget(p *peer) (messages []*message, receives []*receive) {
	g.Helper()
	for {
		m := take(&g.messages, func(m *message) bool { return p == nil || m.from == p })
		if m == nil {
			break
		}
		messages = append(messages, m)
	}
	// Those with all bits come first.
	for _, exact := range []bool{true, false} {
		for {
			r := take(&g.receives, func(r *receive) bool {
				return r.source == p && (r.mask == match.Exact) == exact
			})
			if r == nil {
				break
			}
			receives = append(receives, r)
		}
	}
	var gotMessages []*message
	var gotReceives []*receive
	g.must(g.x.Forget(p.match(),
		func(m *message) { gotMessages = append(gotMessages, m) },
		func(r *receive) { gotReceives = append(gotReceives, r) }))
	if !slices.Equal(gotMessages, messages) || !slices.Equal(gotReceives, receives) {
		g.Fatalf("Forget: %d messages and %d receives, and not %d and %d, or in another order",
			len(gotMessages), len(gotReceives), len(messages), len(receives))
	}
	g.counts()
	return messages, receives
}

// counts compares all numbers.
func (g *rig) counts() {
	g.Helper()
	if got := g.x.Posted(); got != len(g.receives) {
		g.Fatalf("%d receives, and not %d", got, len(g.receives))
	}
	g.unexpected(g.x.Unexpected, func(*message) bool { return true })
	for _, p := range g.peers {
		g.unexpected(p.node.Unexpected, func(m *message) bool { return m.from == p })
	}
}

func (g *rig) unexpected(of func() (int, uint64), counts func(*message) bool) {
	g.Helper()
	messages, bytes := 0, uint64(0)
	for _, m := range g.messages {
		if counts(m) {
			messages, bytes = messages+1, bytes+uint64(m.bytes)
		}
	}
	if n, b := of(); n != messages || b != bytes {
		g.Fatalf("%d messages of %d bytes, and not %d of %d", n, b, messages, bytes)
	}
}

// check looks inside.
func (g *rig) check() {
	g.Helper()
	nodes := make([]*match.Peer[receive, message], len(g.peers))
	for i, p := range g.peers {
		nodes[i] = &p.node
	}
	if wrong := g.x.Check(nodes...); wrong != "" {
		g.Fatal(wrong)
	}
}
