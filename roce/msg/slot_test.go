package msg

import (
	"slices"
	"testing"
)

// crowd is an endpoint with peers of which each has sent so many messages: the first is kept, and
// the others wait in their slots.
type crowd struct {
	*world
	hub   *node
	conns []*Conn // of the peers
	own   []*Conn // of the hub, to them
}

func newCrowd(t *testing.T, peers, messages int, tag func(peer, n int) uint64) *crowd {
	t.Helper()
	x := &crowd{world: newWorld(t, 1)}
	small := Config{EagerLimit: 100, Slots: 4, Unexpected: 1}
	x.hub = x.node(small)
	other := x.node(small)
	for range peers {
		c, own := x.join(other, x.hub, allCapabilities)
		x.conns, x.own = append(x.conns, c), append(x.own, own)
	}
	x.settle()
	for n := range messages {
		for i, c := range x.conns {
			must(t, c.Send(x.now, &Send{Tag: tag(i, n), Pieces: [][]byte{{byte(i), byte(n)}}}))
		}
		x.settle() // so that message n of each peer arrives before message n + 1 of any
	}
	waiting := 0
	if messages > 1 {
		waiting = peers
	}
	if u := x.hub.endpoint.Usage(); u.Unexpected != peers || u.Waiting != waiting {
		t.Fatalf("%d messages are kept, %d peers wait", u.Unexpected, u.Waiting)
	}
	return x
}

// receive posts a receive, which must have its message at once, and returns the peer that it is
// of and its number there.
func (x *crowd) receive(tag, mask uint64) (peer, n byte) {
	x.t.Helper()
	r := &Receive{Tag: tag, Mask: mask, Pieces: [][]byte{make([]byte, 2)}}
	must(x.t, x.hub.endpoint.Receive(x.now, r))
	if got := x.hub.endpoint.NextReceived(); got != r || r.Err != nil || r.Length != 2 {
		x.t.Fatalf("of tag %d came %v: %v", tag, got, r.Err)
	}
	return r.Pieces[0][0], r.Pieces[0][1]
}

// TestReceiveLooksAtNoOtherPeer: a thousand peers have a message in a slot, each with a tag of
// its own. Who has posted a receive for one of them makes the machine look at that peer alone:
// the records of the others are taken away, and whoever looked there would go on.
func TestReceiveLooksAtNoOtherPeer(t *testing.T) {
	const peers = 1000
	x := newCrowd(t, peers, 2, func(peer, n int) uint64 { return uint64(n*peers + peer) })
	own := x.own
	records := make([]Records, peers)
	for i, c := range own {
		a := c.arrivals.head()
		records[i], a.records = a.records, Records{}
	}
	looked := func() (n int) {
		for _, c := range own {
			n += 1 - c.arrivals.n
		}
		return n
	}
	for turn, peer := range x.rand.Perm(peers) {
		a := own[peer].arrivals.head()
		a.records = records[peer]
		tag := uint64(peers + peer)
		if got, _ := x.receive(tag, ^uint64(0)); got != byte(peer) {
			t.Fatalf("tag %d is of peer %d", tag, got)
		}
		if n := looked(); n != turn+1 {
			t.Fatalf("receive %d: %d peers were looked at", turn+1, n)
		}
	}
	if u := x.hub.endpoint.Usage(); u.Waiting != 0 || u.Unexpected != peers {
		t.Errorf("%d peers wait, %d messages are kept", u.Waiting, u.Unexpected)
	}
}

// TestReceiveThatFitsNobodyLooksAtNobody: nor does one that waits for another message.
func TestReceiveThatFitsNobodyLooksAtNobody(t *testing.T) {
	x := newCrowd(t, 10, 2, func(peer, _ int) uint64 { return uint64(peer) })
	for _, c := range x.own {
		c.arrivals.head().records = Records{}
	}
	for _, from := range append(x.own, nil) {
		r := &Receive{Tag: 77, Mask: ^uint64(0), From: from}
		must(t, x.hub.endpoint.Receive(x.now, r))
	}
	if u := x.hub.endpoint.Usage(); u.Waiting != 10 || u.Receives != 11 {
		t.Errorf("%d peers wait, and %d receives", u.Waiting, u.Receives)
	}
}

// TestPeersThatWaitTakeTurns: receives that fit all have the messages that wait in slots by
// turns, a peer's in their order.
func TestPeersThatWaitTakeTurns(t *testing.T) {
	const peers, messages = 5, 4
	x := newCrowd(t, peers, messages, func(int, int) uint64 { return 0 })
	next := make([]byte, peers)
	var turns []int
	for range peers * messages {
		peer, n := x.receive(0, 0)
		if n != next[peer] {
			t.Fatalf("message %d of peer %d, want %d", n, peer, next[peer])
		}
		next[peer]++
		turns = append(turns, int(peer))
		x.settle()
	}
	for i := 0; i < len(turns); i += peers {
		round := slices.Sorted(slices.Values(turns[i : i+peers]))
		if !slices.Equal(round, []int{0, 1, 2, 3, 4}) {
			t.Errorf("turns %v: not everybody has one in each round", turns)
			break
		}
	}
}

// TestRoomForOneMore: a message in a slot is kept as soon as there is room for it: when one of
// its peer that was announced is received, no other receive need fit it.
func TestRoomForOneMore(t *testing.T) {
	d := newDuo(t, Config{Unexpected: 1})
	announced := &Send{Tag: 1, Protocol: Get, Pieces: [][]byte{make([]byte, 10_000)}}
	behind := &Send{Tag: 2, Pieces: [][]byte{make([]byte, 10)}}
	must(t, d.ca.Send(d.now, announced))
	must(t, d.ca.Send(d.now, behind))
	d.settle()
	e := d.b.endpoint
	if _, ok := e.Probe(2, ^uint64(0), nil); ok || e.Usage().Waiting != 1 {
		t.Fatal("the second message is kept")
	}
	r := &Receive{Tag: 1, Mask: ^uint64(0), Pieces: [][]byte{make([]byte, 10_000)}}
	must(t, e.Receive(d.now, r))
	if _, ok := e.Probe(2, ^uint64(0), nil); !ok || e.Usage().Waiting != 0 {
		t.Error("the second message still waits in its slot")
	}
	d.settle()
}
