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
