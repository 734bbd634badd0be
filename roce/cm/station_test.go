package cm_test

import (
	"testing"

	"xroce/roce/clock"
	"xroce/roce/cm"
)

// Stations of these tests: that of the peer, and those of who says that he is the peer.
var (
	theirStation = cm.Via{MAC: [6]byte{2, 0, 0, 0, 0, 1}, VLAN: 5}
	elsewhere    = map[string]cm.Via{
		"another station": {MAC: [6]byte{2, 0, 0, 0, 0, 2}, VLAN: theirStation.VLAN},
		"another VLAN":    {MAC: theirStation.MAC, VLAN: theirStation.VLAN + 1},
	}
)

// guesses leave of a request what somebody guessed.
var guesses = map[string]func(*cm.REQ){
	"queue pair": func(q *cm.REQ) { q.LocalCommID++ },
	"ID":         func(q *cm.REQ) { q.LocalQPN++ },
	"both":       func(q *cm.REQ) { q.StartingPSN++ },
}

// linked makes an established connection with them, on one end or the other: the answers of an
// active one go where addresses lead, and theirs come from their station.
var linked = map[string]func(*rig) cm.ID{
	"active": func(r *rig) cm.ID {
		r.T.Helper()
		r.listen()
		id, _ := r.connect()
		back := r.path
		r.path.Via = theirStation
		r.give(rep(id))
		r.event(cm.EventConnectResponse)
		must(r.T, r.m.Establish(id, nil))
		r.sent(cm.AttributeRTU, back)
		r.path.FlowLabel = 0
		return id
	},
	"passive": func(r *rig) cm.ID {
		r.T.Helper()
		r.path.Via = theirStation
		return r.accepted()
	},
}

// TestStaleFromElsewhere: a request of a queue pair or an ID that is still connected ends the
// connection when it comes from the station of the peer, and from no other, where anybody may say
// that he is the peer and guess what numbers that has.
func TestStaleFromElsewhere(t *testing.T) {
	for end, begin := range linked {
		for name, change := range guesses {
			for where, via := range elsewhere {
				t.Run(end+"/"+name+"/"+where, func(t *testing.T) {
					r := newRig(t, cm.Config{})
					id := begin(r)
					req := r.req()
					change(req)
					guess := *req
					guess.StartingPSN += 2
					r.path.Via = via
					r.give(&guess)
					r.event(cm.EventConnectRequest)
					r.silent()
					r.counted(cm.StaleRejected, 0)
					if s := r.m.State(id); s != cm.StateEstablished {
						t.Errorf("the connection is in %s", s)
					}
					r.path.Via = theirStation
					r.give(req)
					if s := r.m.State(id); s != cm.StateDREQSent {
						t.Errorf("it was the peer, and the connection is in %s", s)
					}
					r.counted(cm.StaleRejected, 1)
				})
			}
		}
	}
}

// TestRequestInTheirName: somebody elsewhere asks in their name, with the queue pair that they ask
// with next, or with their ID. Whatever comes of it, they are not refused because of that.
func TestRequestInTheirName(t *testing.T) {
	accept := func(r *rig, id cm.ID) {
		must(r.T, r.m.Accept(r.now, id, cm.Accept{QPN: ourQPN, PSN: ourPSN}))
		r.sent(cm.AttributeREP, r.path)
	}
	ends := map[string]struct {
		do    func(*rig, cm.ID)
		state cm.State
	}{
		"waits":    {func(*rig, cm.ID) {}, cm.StateREQRcvd},
		"accepted": {accept, cm.StateREPSent},
		"ended": {func(r *rig, id cm.ID) {
			accept(r, id)
			must(r.T, r.m.Disconnect(r.now, id, nil))
			r.sent(cm.AttributeREJ, r.path)
		}, cm.StateTimewait},
	}
	for name, change := range guesses {
		for end, e := range ends {
			for where, via := range elsewhere {
				t.Run(name+"/"+end+"/"+where, func(t *testing.T) {
					r := newRig(t, cm.Config{})
					r.listen()
					req := r.req()
					change(req)
					r.path.Via = via
					r.give(req)
					id := r.event(cm.EventConnectRequest).ID
					e.do(r, id)
					if s := r.m.State(id); s != e.state {
						t.Fatalf("the stranger is in %s", s)
					}
					r.path.Via = theirStation
					theirs := r.requested()
					r.silent()
					r.accept(theirs)
					r.give(rtu(theirs))
					r.event(cm.EventEstablished)
					r.counted(cm.StaleRejected, 0)
				})
			}
		}
	}
}

// TestRepeatedByAnotherWay: their request comes again, word for word, and by another station: a
// router that took the place of one, or a host with several ports. It is the one that is there.
func TestRepeatedByAnotherWay(t *testing.T) {
	for where, via := range elsewhere {
		t.Run(where, func(t *testing.T) {
			r := newRig(t, cm.Config{})
			r.listen()
			r.path.Via = theirStation
			back := r.path
			id := r.requested()
			r.path.Via = via
			r.give(r.req())
			r.sent(cm.AttributeMRA, back)
			must(t, r.m.Accept(r.now, id, cm.Accept{QPN: ourQPN, PSN: ourPSN}))
			r.sent(cm.AttributeREP, back)
			r.give(r.req())
			r.sent(cm.AttributeREP, back)
			r.give(rtu(id))
			r.event(cm.EventEstablished)
			r.give(r.req())
			r.silent()
			r.counted(cm.StaleRejected, 0)
		})
	}
}

// TestHastyPeer: a request says how soon its answer is to be repeated, and anybody may have sent
// it. One packet is not answered by many at once.
func TestHastyPeer(t *testing.T) {
	for code := range uint8(16) {
		r := newRig(t, cm.Config{})
		r.listen()
		req := r.req()
		req.LocalTimeout = code
		r.give(req)
		id := r.event(cm.EventConnectRequest).ID
		rep := r.accept(id)
		r.pass(100 * clock.Millisecond)
		r.silent()
		if s := r.m.State(id); s != cm.StateREPSent {
			t.Errorf("code %d: the connection is in %s", code, s)
		}
		r.pass(156 * clock.Millisecond)
		r.want(theirTID, rep)
		r.silent()
	}
}
