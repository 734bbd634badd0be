package match_test

import (
	"math/rand/v2"
	"testing"

	"xroce/roce/msg/match"
)

// masks that a script chooses from: all bits, none, halves, one.
var masks = []uint64{
	match.Exact, match.Exact, match.Exact, match.Exact, 0, 0xffffffff, 0xffffffff << 32, 1,
}

// A history is a rig that bytes drive: they choose calls and their arguments.
type history struct {
	*rig
	script []byte
	tags   int        // different ones, at most 256
	known  []*receive // lately posted, queued or not
	seen   []*message // lately arrived, unexpected or not
}

// recent is how many receives and messages a history remembers for calls on them.
const recent = 64

// play plays a script to its end, then takes out all that is left.
func play(tb testing.TB, script []byte, tags int) {
	h := &history{rig: newRig(tb, 3), script: script, tags: tags}
	for step := 0; len(h.script) > 0; step++ {
		h.step()
		if step%256 == 0 {
			h.check()
			h.loose()
		}
	}
	h.check()
	for _, p := range h.peers {
		h.forget(p)
	}
	h.forget(nil)
	h.check()
	if n, _ := h.x.Unexpected(); n != 0 || h.x.Posted() != 0 {
		tb.Fatal("something is left")
	}
}

// next takes a byte of the script, 0 when it is over.
func (h *history) next() int {
	if len(h.script) == 0 {
		return 0
	}
	b := h.script[0]
	h.script = h.script[1:]
	return int(b)
}

// tag chooses a tag: some bits in each half.
func (h *history) tag() uint64 {
	n := uint64(h.next() % h.tags)
	return n>>1<<40 | n
}

// source chooses a peer, or any with nil.
func (h *history) source() *peer {
	if n := h.next() % (2 * len(h.peers)); n < len(h.peers) {
		return h.peers[n]
	}
	return nil
}

// pattern chooses what a receive asks for.
func (h *history) pattern() (tag, mask uint64, source *peer) {
	return h.tag(), masks[h.next()%len(masks)], h.source()
}

// step makes one call.
func (h *history) step() {
	op := h.next()
	switch {
	case op < 100:
		r, _ := h.post(h.pattern())
		h.known = remember(h.known, r)
	case op < 200:
		m, _ := h.arrive(h.peers[h.next()%len(h.peers)], h.tag(), uint32(h.next()))
		h.seen = remember(h.seen, m)
	case op < 215:
		h.probe(h.pattern())
	case op < 230:
		h.claim(h.pattern())
	case op < 242 && len(h.known) > 0:
		h.cancel(h.known[h.next()%len(h.known)])
	case op < 254 && len(h.seen) > 0:
		h.withdraw(h.seen[h.next()%len(h.seen)])
	case op == 254:
		h.forget(nil)
	case op == 255:
		p := h.peers[h.next()%len(h.peers)]
		h.forget(p)
		h.must(h.x.Add(&p.node))
	}
}

// loose fails if something that was taken out still points to what is queued, and so
// would keep it in memory.
func (h *history) loose() {
	h.Helper()
	for _, r := range h.known {
		if !r.node.Queued() && !r.node.Loose() {
			h.Fatal("a receive that is not queued points to others")
		}
	}
	for _, m := range h.seen {
		if !m.node.Queued() && !m.node.Loose() {
			h.Fatal("a message that is not queued points to others")
		}
	}
}

// remember appends to what is remembered, and forgets the oldest.
func remember[T any](list []*T, v *T) []*T {
	if len(list) == recent {
		list = append(list[:0], list[1:]...)
	}
	return append(list, v)
}

// TestHistories compares long histories with the model: with few tags, so that much
// fits, and with many, so that much waits and tables grow.
func TestHistories(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 12_000)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		for _, tags := range []int{1, 4, 256} {
			play(t, script, tags)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestCrowds is TestHistories where nothing is forgotten and hundreds of different
// keys wait at a time, so that tables are resized under way.
func TestCrowds(t *testing.T) {
	g := newRig(t, 3)
	random := rand.New(rand.NewPCG(11, 0))
	start := g.x.Buckets()
	for step := range 4000 {
		tag, from := random.Uint64N(1000), g.peers[random.IntN(3)]
		// Mostly messages, then mostly receives, until these wait.
		if random.IntN(4000) > step {
			g.arrive(from, tag, 1)
		} else {
			g.post(tag, masks[random.IntN(2)], from)
		}
	}
	g.check()
	if g.x.Buckets() < 4*start {
		t.Errorf("the tables have %d buckets: they hardly grew", g.x.Buckets())
	}
}

// FuzzMatch drives model and matcher with bytes; see history.
func FuzzMatch(f *testing.F) {
	// A wildcard before an exact receive, and the message that both fit.
	f.Add([]byte{0, 0, 4, 5, 0, 0, 0, 0, 100, 0, 0, 9}, uint8(3))
	// A message that is probed, claimed, and asked for in vain.
	f.Add([]byte{100, 0, 0, 9, 200, 0, 0, 5, 215, 0, 0, 5, 0, 0, 0, 5}, uint8(0))
	// A receive and a message that are taken out, twice.
	f.Add([]byte{0, 1, 0, 0, 230, 0, 230, 0, 100, 0, 0, 9, 242, 0, 242, 0}, uint8(7))
	// A peer that is forgotten with what it has.
	f.Add([]byte{0, 1, 0, 0, 0, 1, 5, 0, 0, 1, 0, 5, 100, 0, 2, 9, 255, 0, 254}, uint8(255))
	f.Fuzz(func(t *testing.T, script []byte, tags uint8) {
		if len(script) <= 4096 {
			play(t, script, int(tags)+1)
		}
	})
}
