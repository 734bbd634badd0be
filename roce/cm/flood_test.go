package cm_test

import (
	"net/netip"
	"testing"

	"xroce/roce/cm"
)

// from lets them ask from another address, with numbers of their own.
func (r *rig) from(host byte, n uint32) {
	r.T.Helper()
	r.path.Remote[15] = host
	req := r.req()
	req.LocalCommID, req.LocalQPN = n, 1000+n
	cm.IPHeader{
		Src: netip.AddrPortFrom(r.path.Remote.Addr(), theirPort), Dst: ourAddr,
	}.Put(req.Private[:])
	r.give(req)
}

// requestedFrom is from, of a request that is taken.
func (r *rig) requestedFrom(host byte, n uint32) cm.ID {
	r.T.Helper()
	r.from(host, n)
	return r.event(cm.EventConnectRequest).ID
}

// TestFloodOfOne lets one host ask for more than the machine holds: it takes the place
// of its own requests, not of those of others, which came first.
func TestFloodOfOne(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  cm.Config
		backlog int
		counter cm.CounterID
	}{
		{"listener", cm.Config{}, 8, cm.BacklogDropped},
		{"all", cm.Config{MaxHalfOpen: 8}, 100, cm.HalfOpenDropped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.config)
			_, err := r.m.Listen(cm.Listen{Service: service, Backlog: tt.backlog})
			must(t, err)
			others := []cm.ID{r.requestedFrom(100, 1), r.requestedFrom(101, 1)}
			var clone []cm.ID
			for n := range uint32(6) {
				clone = append(clone, r.requestedFrom(200, n))
			}
			for n := range uint32(100) {
				r.from(200, 6+n)
				if e := r.event(cm.EventUnreachable); e.ID != clone[n] {
					t.Fatalf("request %d takes the place of %d, want %d", n, e.ID, clone[n])
				}
				r.event(cm.EventTimewaitExit)
				clone = append(clone, r.event(cm.EventConnectRequest).ID)
			}
			r.counted(tt.counter, 100)
			for _, id := range others {
				if s := r.m.State(id); s != cm.StateREQRcvd {
					t.Errorf("%d is in %s", id, s)
				}
			}
		})
	}
}

// TestFloodOfTheEnded lets a host that is there connect, and never confirm that it was hung up on:
// what is remembered of that is bounded, the oldest goes, and nobody is refused because of it.
func TestFloodOfTheEnded(t *testing.T) {
	const most = 16
	r := newRig(t, cm.Config{MaxConnections: 4 * most})
	r.listen()
	var ids []cm.ID
	for n := range uint32(20 * most) {
		id := r.requestedFrom(200, n)
		must(t, r.m.Accept(r.now, id, cm.Accept{QPN: ourQPN, PSN: ourPSN}))
		r.give(&cm.RTU{LocalCommID: n, RemoteCommID: uint32(id)})
		r.event(cm.EventEstablished)
		must(t, r.m.Disconnect(r.now, id, nil))
		if ids = append(ids, id); len(ids) > most {
			if e := r.event(cm.EventDisconnected); e.ID != ids[0] {
				t.Fatalf("%d goes, want %d", e.ID, ids[0])
			}
			r.event(cm.EventTimewaitExit)
			ids = ids[1:]
		}
		if u := r.m.Usage(); u.Connections != len(ids) || u.Events != 0 {
			t.Fatalf("%+v, want %d connections", u, len(ids))
		}
	}
	r.counted(cm.OverDropped, 19*most)
	r.requestedFrom(100, 1)
}

// TestFloodOfMany is one of which nobody sends more than the others: the oldest request
// goes.
func TestFloodOfMany(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 3})
	r.listen()
	var ids []cm.ID
	for host := range byte(3) {
		ids = append(ids, r.requestedFrom(100+host, 1))
	}
	for n := range 20 {
		r.from(103+byte(n), 1)
		if e := r.event(cm.EventUnreachable); e.ID != ids[n] {
			t.Fatalf("request %d takes the place of %d, want %d", n, e.ID, ids[n])
		}
		r.event(cm.EventTimewaitExit)
		ids = append(ids, r.event(cm.EventConnectRequest).ID)
	}
}

// TestDroppedAfterMRA drops a request whose peer got an MRA: it would
// not ask again for a minute, so it is told.
func TestDroppedAfterMRA(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 1})
	r.listen()
	id := r.requested()
	r.give(r.req())
	r.want(theirTID, &cm.MRA{
		LocalCommID: uint32(id), RemoteCommID: theirID, ServiceTimeout: 24,
	})
	req := r.req()
	req.LocalCommID++
	req.LocalQPN++
	r.give(req)
	r.want(theirTID, ourREJ(id, theirID, cm.SubjectREQ, cm.ReasonNoResources))
	r.event(cm.EventUnreachable)
	r.event(cm.EventTimewaitExit)
	r.event(cm.EventConnectRequest)
}

// TestFloodOfStrangers lets strangers ask who come by one station and name many hosts: they
// take the place of each other, not of a request that came by another station, nor of one
// whose host is known.
func TestFloodOfStrangers(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 4})
	r.listen()
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}, VLAN: 5}
	elsewhere := r.requestedFrom(100, 1)
	r.path.Via = cm.Via{MAC: [6]byte{2, 2}}
	known, best := r.requestedFrom(101, 1), r.requestedFrom(102, 1)
	must(t, r.m.Vouch(known, cm.RankKnown, [6]byte{2}))
	must(t, r.m.Vouch(best, cm.RankNeighbour, [6]byte{2}))
	stranger := r.requestedFrom(103, 1)
	for n := range 20 {
		r.from(104+byte(n), 1)
		if e := r.event(cm.EventUnreachable); e.ID != stranger {
			t.Fatalf("request %d takes the place of %d, want %d", n, e.ID, stranger)
		}
		r.event(cm.EventTimewaitExit)
		stranger = r.event(cm.EventConnectRequest).ID
	}
	for _, id := range []cm.ID{elsewhere, known, best} {
		if s := r.m.State(id); s != cm.StateREQRcvd {
			t.Errorf("%d is in %s", id, s)
		}
	}
	// When only those are left of whom something is known, least counts least.
	must(t, r.m.Vouch(elsewhere, cm.RankNeighbour, [6]byte{2}))
	must(t, r.m.Vouch(stranger, cm.RankNeighbour, [6]byte{2}))
	r.from(200, 1)
	if e := r.event(cm.EventUnreachable); e.ID != known {
		t.Errorf("%d makes room, want %d", e.ID, known)
	}
}

// TestFloodOfTheKnown lets one station ask in the names of hosts that are known at once, and
// another station once, in a name that nobody had the time to look for: the first takes the place
// of its own requests.
func TestFloodOfTheKnown(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 4})
	r.listen()
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}}
	other := r.requestedFrom(100, 1)
	r.path.Via = cm.Via{MAC: [6]byte{2, 2}}
	var known []cm.ID
	vouch := func() {
		id := r.event(cm.EventConnectRequest).ID
		must(t, r.m.Vouch(id, cm.RankKnown, [6]byte{2}))
		known = append(known, id)
	}
	for n := range 3 {
		r.from(101+byte(n), 1)
		vouch()
	}
	for n := range 20 {
		r.from(104+byte(n), 1)
		if e := r.event(cm.EventUnreachable); e.ID != known[n] {
			t.Fatalf("request %d takes the place of %d, want %d", n, e.ID, known[n])
		}
		r.event(cm.EventTimewaitExit)
		vouch()
	}
	if s := r.m.State(other); s != cm.StateREQRcvd {
		t.Errorf("the other one is in %s", s)
	}
}

// TestFloodOfStations lets strangers ask in names that nobody has, each by a station of its own:
// they take each other's places, and not those of known hosts of which one station sent several.
func TestFloodOfStations(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 12})
	r.listen()
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}}
	var known []cm.ID
	for n := range 4 {
		known = append(known, r.requestedFrom(100+byte(n), 1))
		must(t, r.m.Vouch(known[n], cm.RankKnown, [6]byte{2}))
	}
	for n := range 50 {
		r.path.Via = cm.Via{MAC: [6]byte{2, 2, byte(n)}}
		r.from(150+byte(n), 1)
		if n >= 8 {
			r.event(cm.EventUnreachable)
			r.event(cm.EventTimewaitExit)
		}
		r.event(cm.EventConnectRequest)
	}
	for n, id := range known {
		if s := r.m.State(id); s != cm.StateREQRcvd {
			t.Errorf("known host %d is in %s", n, s)
		}
	}
}

// TestBusyStationWaits lets a station have many connections under way, and one request that waits
// at the listener: strangers who fill that do not drive it out for what does not wait there.
func TestBusyStationWaits(t *testing.T) {
	r := newRig(t, cm.Config{})
	_, err := r.m.Listen(cm.Listen{Service: service, Backlog: 8})
	must(t, err)
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}}
	var known cm.ID
	for n := range uint32(6) {
		known = r.requestedFrom(100, n)
		must(t, r.m.Vouch(known, cm.RankKnown, [6]byte{2}))
		if n < 5 {
			must(t, r.m.Accept(r.now, known, cm.Accept{QPN: ourQPN + n, PSN: ourPSN}))
		}
	}
	for n := range 50 {
		r.path.Via = cm.Via{MAC: [6]byte{2, 2, byte(n)}}
		r.from(150+byte(n), 1)
		if n >= 7 {
			r.event(cm.EventUnreachable)
			r.event(cm.EventTimewaitExit)
		}
		r.event(cm.EventConnectRequest)
	}
	if s := r.m.State(known); s != cm.StateREQRcvd {
		t.Errorf("it is in %s", s)
	}
}

// TestAnswerGoesBack: what is answered goes to the station that asked, until the connection
// is established; then it goes where its addresses lead, on the same VLAN.
func TestAnswerGoesBack(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	there := r.path
	there.Via.VLAN = 5
	r.path.Via = cm.Via{MAC: [6]byte{2, 1}, VLAN: 5}
	id := r.requested()
	must(t, r.m.Accept(r.now, id, cm.Accept{QPN: ourQPN, PSN: ourPSN}))
	r.sent(cm.AttributeREP, r.path)
	r.give(&cm.RTU{LocalCommID: theirID, RemoteCommID: uint32(id)})
	r.event(cm.EventEstablished)
	r.path.Via.MAC[0] = 6 // somebody else
	r.give(r.req())
	must(t, r.m.Disconnect(r.now, id, nil))
	r.sent(cm.AttributeDREQ, there)
}

// TestAnswerGoesToTheHost: what is answered to one of whom the first hop is known goes there,
// whoever asked; his station is counted until the request is no longer half open.
func TestAnswerGoesToTheHost(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	asker, host := [6]byte{2, 1}, [6]byte{2, 9}
	r.path.Via.MAC = asker
	there := r.path
	there.Via.MAC = host
	id := r.requested()
	must(t, r.m.Vouch(id, cm.RankKnown, host))
	must(t, r.m.Accept(r.now, id, cm.Accept{QPN: ourQPN, PSN: ourPSN}))
	r.sent(cm.AttributeREP, there)
	r.give(r.req()) // once more
	r.sent(cm.AttributeREP, there)
	r.give(&cm.RTU{LocalCommID: theirID, RemoteCommID: uint32(id)})
	r.event(cm.EventEstablished)
}

// TestSIDRAnswerGoesToTheHost: the same of datagram services.
func TestSIDRAnswerGoesToTheHost(t *testing.T) {
	r := newRig(t, cm.Config{})
	_, err := r.m.Listen(cm.Listen{Service: datagrams, Datagram: true})
	must(t, err)
	host := [6]byte{2, 9}
	r.path.Via.MAC = [6]byte{2, 1}
	there := r.path
	there.Via.MAC = host
	r.give(sidrREQ())
	e := r.event(cm.EventSIDRRequest)
	must(t, r.m.RespondSIDR(r.now, e.ID, cm.SIDRResponse{QPN: ourQPN, Hop: host}))
	r.sent(cm.AttributeSIDRREP, there)
	r.give(sidrREQ())
	r.sent(cm.AttributeSIDRREP, there)
}

// sent takes the next MAD: it must be this message, on this path.
func (r *rig) sent(want cm.Attribute, to cm.Path) {
	r.T.Helper()
	mad := make([]byte, cm.MADLen)
	got, ok := r.m.NextMAD(mad)
	h, _ := cm.ParseHeader(mad)
	if !ok || h.Attribute != want || got != to {
		r.T.Errorf("%s to %+v (%v), want %s to %+v", h.Attribute, got, ok, want, to)
	}
}
