package match_test

import (
	"errors"
	"testing"

	"xroce/roce/msg/match"
)

// want fails unless an error is the one that it should be, and nothing has changed.
func (g *rig) want(what string, err, want error) {
	g.Helper()
	if !errors.Is(err, want) {
		g.Errorf("%s: %v, and not %v", what, err, want)
	}
	g.counts()
	g.check()
}

// TestRefusedReceives has everything that a receive can be refused for.
func TestRefusedReceives(t *testing.T) {
	g, other := newRig(t, 1), newRig(t, 1)
	stranger, raw := &peer{}, &receive{}
	_, err := g.x.Post(&raw.node, 1, match.Exact, nil)
	g.want("without Init", err, match.ErrOwner)
	for _, mask := range []uint64{match.Exact, 0} {
		queued, _ := g.post(1, mask, g.peers[0])
		_, err = g.x.Post(&queued.node, 2, mask, nil)
		g.want("twice", err, match.ErrQueued)
		_, err = other.x.Post(&queued.node, 1, mask, nil)
		other.want("twice, elsewhere", err, match.ErrQueued)
		if other.x.Cancel(&queued.node) {
			t.Error("another matcher cancels it")
		}
		g.want("cancelled elsewhere", nil, nil)
		g.cancel(queued)
	}
	free := &receive{}
	free.node.Init(free)
	_, err = g.x.Post(&free.node, 1, match.Exact, &stranger.node)
	g.want("from a peer that was never added", err, match.ErrPeer)
	_, err = g.x.Post(&free.node, 1, match.Exact, &other.peers[0].node)
	g.want("from a peer of another matcher", err, match.ErrPeer)
	g.arrive(g.peers[0], 1, 0)
	for _, from := range []*peer{stranger, other.peers[0]} {
		if g.x.Probe(1, 0, from.match()) != nil || g.x.Claim(1, 0, from.match()) != nil {
			t.Error("a probe of a peer that is not known finds something")
		}
	}
	g.forget(g.peers[0])
	_, err = g.x.Post(&free.node, 1, match.Exact, &g.peers[0].node)
	g.want("from a peer that is forgotten", err, match.ErrPeer)
	if free.node.Queued() || g.x.Cancel(&free.node) {
		t.Error("a receive that was refused is queued")
	}
}

// TestRefusedMessages has everything that a message can be refused for.
func TestRefusedMessages(t *testing.T) {
	g, other := newRig(t, 1), newRig(t, 1)
	stranger, raw := &peer{}, &message{}
	_, err := g.x.Arrive(&raw.node, &g.peers[0].node, 1, 9)
	g.want("without Init", err, match.ErrOwner)
	queued, _ := g.arrive(g.peers[0], 1, 9)
	_, err = g.x.Arrive(&queued.node, &g.peers[0].node, 2, 9)
	g.want("twice", err, match.ErrQueued)
	_, err = other.x.Arrive(&queued.node, &other.peers[0].node, 1, 9)
	other.want("twice, elsewhere", err, match.ErrQueued)
	if other.x.Withdraw(&queued.node) {
		t.Error("another matcher withdraws it")
	}
	g.want("withdrawn elsewhere", nil, nil)
	free := &message{}
	free.node.Init(free)
	g.post(2, 0xff, nil)
	_, err = g.x.Arrive(&free.node, nil, 2, 9)
	g.want("of nobody", err, match.ErrPeer)
	_, err = g.x.Arrive(&free.node, &stranger.node, 2, 9)
	g.want("of a peer that was never added", err, match.ErrPeer)
	_, err = g.x.Arrive(&free.node, &other.peers[0].node, 2, 9)
	g.want("of a peer of another matcher", err, match.ErrPeer)
	g.forget(g.peers[0])
	_, err = g.x.Arrive(&free.node, &g.peers[0].node, 2, 9)
	g.want("of a peer that is forgotten", err, match.ErrPeer)
	if free.node.Queued() || g.x.Withdraw(&free.node) {
		t.Error("a message that was refused is queued")
	}
}

// TestRefusedPeers: a peer is known to one matcher once, and forgotten once.
func TestRefusedPeers(t *testing.T) {
	g, other := newRig(t, 1), newRig(t, 0)
	p := &g.peers[0].node
	g.arrive(g.peers[0], 1, 9)
	g.want("twice", g.x.Add(p), match.ErrKnown)
	g.want("to another matcher", other.x.Add(p), match.ErrKnown)
	nothing := func(*message) { t.Error("a message is forgotten") }
	g.want("forgotten elsewhere", other.x.Forget(p, nothing, nil), match.ErrPeer)
	g.forget(g.peers[0])
	g.want("forgotten twice", g.x.Forget(p, nothing, nil), match.ErrPeer)
	g.must(other.x.Add(p))
}
