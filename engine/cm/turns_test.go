package cm

import (
	"encoding/binary"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/wire"
)

func station(n byte) cm.Via { return cm.Via{MAC: [6]byte{2, 0, 0, 0, 0, n}} }

// askedBy is a request that came by a station, of a host to which another one leads.
func askedBy(from, hop byte, rank cm.Rank) *Request {
	return &Request{
		event: cm.Event{Path: cm.Path{Via: station(from)}},
		way:   wire.Path{DstMAC: station(hop).MAC}, rank: rank,
	}
}

// TestTurnBeforeWay: a client whose router sends from another station than the one that leads there
// does not wait at Accept for a neighbour that always has several requests there.
func TestTurnBeforeWay(t *testing.T) {
	l := &Listener{manager: &Manager{}, some: make(chan struct{}, 1)}
	client := askedBy(10, 11, cm.RankKnown)
	l.queue = append(l.queue, client)
	for range 3 {
		l.queue = append(l.queue, askedBy(1, 1, cm.RankNeighbour))
	}
	for range 2 {
		if l.next() == client {
			return
		}
		l.queue = append(l.queue, askedBy(1, 1, cm.RankNeighbour))
	}
	t.Error("two of one neighbour were taken before the only one of the client")
}

// TestWayBeforeRank: of several stations none of which has most of what waits, one by which its
// host is not reached comes last, whoever's turn it is.
func TestWayBeforeRank(t *testing.T) {
	for _, crowd := range []bool{false, true} {
		l := &Listener{manager: &Manager{}, some: make(chan struct{}, 1), crowd: crowd}
		stranger, local := askedBy(10, 11, cm.RankKnown), askedBy(1, 1, cm.RankKnown)
		l.queue = []*Request{stranger, local}
		if l.next() != local {
			t.Errorf("turn of a crowd %t: the stranger came first", crowd)
		}
	}
}

// TestLookAtWhoIsNew: a station of which nothing is known is looked at, though three that lead to
// somebody always wait.
func TestLookAtWhoIsNew(t *testing.T) {
	l := &line{burst: 1, hops: hops{}}
	join := func(n byte) *search {
		s := &search{requests: []*Request{askedBy(n, n, 0)}}
		l.join(s)
		return s
	}
	client := join(50)
	for n := byte(1); n <= 3; n++ {
		l.hops[station(n).MAC] = 1
		join(n)
		join(n)
	}
	for range 2 {
		s := l.next(0)
		if s == client {
			return
		}
		join(s.requests[0].event.Path.Via.MAC[5])
	}
	t.Error("two of three stations were looked at before the only one of another")
}

// TestHopsAreOfTheTable: a station leads to as many hosts as the table says, whatever is learnt,
// learnt anew, forgotten and not found.
func TestHopsAreOfTheTable(t *testing.T) {
	var r routes
	r.init()
	to := func(n uint32) destination {
		d := destination{remote: wire.GID{10: 0xff, 11: 0xff}}
		binary.BigEndian.PutUint32(d.remote[12:], n)
		return d
	}
	for n := range uint32(3 * maxRoutes) {
		r.learn(to(n%1500), station(byte(n%7)).MAC, 0)
		r.learnNone(to(n/2), 2*routeLife)
		r.learnNone(to(n/3), 0) // a route that is believed stays
	}
	counted := hops{}
	for d, known := range r.table {
		counted.count(d, known, 1)
	}
	if len(r.table) != maxRoutes || len(counted) != len(r.hops) {
		t.Errorf("%d routes by %d stations, and %d lead to somebody", len(r.table), len(counted),
			len(r.hops))
	}
	for mac, n := range counted {
		if r.hops[mac] != n {
			t.Errorf("%x leads to %d and not %d", mac, r.hops[mac], n)
		}
	}
}
