package cm_test

import (
	"testing"

	"xroce/roce/cm"
)

// TestFloodOfANeighbour has a host that is there, at a station of its own, ask more often than
// there is room. Its requests make room for each other, and not one that is the only one of its
// station: of a host that nobody has looked for yet, or with an address that proves nothing.
func TestFloodOfANeighbour(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 8})
	r.listen()
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}}
	fresh := r.requestedFrom(100, 1)
	r.path.Via = cm.Via{MAC: [6]byte{2, 3}}
	local := r.requestedFrom(101, 1)
	must(t, r.m.Vouch(local, cm.RankKnown, r.path.Via.MAC))
	r.path.Via = cm.Via{MAC: [6]byte{2, 2}}
	for n := range uint32(20) {
		r.from(200, n)
		for e, ok := r.m.NextEvent(); ok; e, ok = r.m.NextEvent() {
			if e.Type == cm.EventConnectRequest {
				must(t, r.m.Vouch(e.ID, cm.RankNeighbour, r.path.Via.MAC))
			}
		}
	}
	for name, id := range map[string]cm.ID{"new": fresh, "link-local": local} {
		if s := r.m.State(id); s != cm.StateREQRcvd {
			t.Errorf("the %s host is in %s", name, s)
		}
	}
}

// TestAnsweredStay: whom the application took makes no room for those that ask, however many these
// are, and however many one station has of the former.
func TestAnsweredStay(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 8})
	r.listen()
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}}
	var answered []cm.ID
	for n := range uint32(8) {
		answered = append(answered, r.answered(100, n, cm.RankNeighbour))
	}
	for n := range byte(20) {
		r.path.Via = cm.Via{MAC: [6]byte{2, 2, n}}
		r.from(n, 1)
		r.events()
	}
	for _, id := range answered {
		if s := r.m.State(id); s != cm.StateREPSent {
			t.Errorf("%d is in %s", id, s)
		}
	}
}

// TestTooManyAnswered: those that were answered, and whose peers say nothing more, make room for
// each other: first the oldest of the station that has most of them, which is told.
func TestTooManyAnswered(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 4})
	r.listen()
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}}
	other := r.answered(100, 1, cm.RankKnown)
	r.path.Via = cm.Via{MAC: [6]byte{2, 2}}
	var many []cm.ID
	for n := range uint32(20) {
		many = append(many, r.answered(101, n, cm.RankNeighbour))
		if usage := r.m.Usage(); usage.HalfOpen > 4 {
			t.Fatalf("%+v", usage)
		}
	}
	r.counted(cm.HalfOpenDropped, 17)
	for n, id := range many {
		if s := r.m.State(id); (s == cm.StateREPSent) != (n >= 17) {
			t.Errorf("%d is in %s", n, s)
		}
	}
	if s := r.m.State(other); s != cm.StateREPSent {
		t.Errorf("that of another station is in %s", s)
	}
}

// answered has a request of a host answered.
func (r *rig) answered(host byte, n uint32, rank cm.Rank) cm.ID {
	r.T.Helper()
	id := r.requestedFrom(host, n)
	must(r.T, r.m.Vouch(id, rank, r.path.Via.MAC))
	must(r.T, r.m.Accept(r.now, id, cm.Accept{QPN: ourQPN + n, PSN: ourPSN}))
	r.events()
	return id
}

// events drops all events.
func (r *rig) events() {
	for ok := true; ok; {
		_, ok = r.m.NextEvent()
	}
}

// TestManyElsewhere: what a station has under way elsewhere does not count against it where it has
// no more waiting than others.
func TestManyElsewhere(t *testing.T) {
	r := newRig(t, cm.Config{})
	_, err := r.m.Listen(cm.Listen{Service: service, Backlog: 8})
	must(t, err)
	router := cm.Via{MAC: [6]byte{2, 1}}
	r.path.Via = router
	for n := range uint32(5) {
		r.answered(100, n, cm.RankNeighbour)
	}
	for n := range byte(7) {
		r.path.Via = cm.Via{MAC: [6]byte{2, 2, n}}
		r.requestedFrom(150+n, 1)
	}
	r.path.Via = router
	client := r.requestedFrom(101, 1)
	r.path.Via = cm.Via{MAC: [6]byte{2, 3}}
	r.from(200, 1)
	if s := r.m.State(client); s != cm.StateREQRcvd {
		t.Errorf("the client is in %s", s)
	}
}

// TestFloodOfLookups has a station ask for a datagram service more often than there is room: its
// requests make room for each other, and not the only one of another station. A new station finds
// room, too.
func TestFloodOfLookups(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 8})
	_, err := r.m.Listen(cm.Listen{Service: datagrams, Datagram: true})
	must(t, err)
	req, kept := sidrREQ(), map[cm.ID]bool{}
	from := func(station byte) {
		r.path.Via = cm.Via{MAC: [6]byte{2, station}}
		req.RequestID++
		r.give(req)
		for e, ok := r.m.NextEvent(); ok; e, ok = r.m.NextEvent() {
			switch {
			case e.Type == cm.EventSIDRRequest && station != 2:
				kept[e.ID] = true
			case e.Type == cm.EventUnreachable && kept[e.ID]:
				t.Errorf("request %d makes room for one of station %d", e.ID, station)
			}
		}
	}
	from(1)
	for range 20 {
		from(2)
	}
	from(3)
	for range 20 {
		from(2)
	}
	if len(kept) != 2 {
		t.Errorf("%d of other stations", len(kept))
	}
	for id := range kept { // also when the answer goes elsewhere
		must(t, r.m.RespondSIDR(r.now, id, cm.SIDRResponse{Hop: [6]byte{2, 9}}))
	}
	for range 20 {
		from(2)
	}
}
