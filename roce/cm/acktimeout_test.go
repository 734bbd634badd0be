package cm_test

import (
	"testing"

	"xroce/roce/clock"
	"xroce/roce/cm"
)

// TestPeersAckTimeout: how long a queue pair of ours waits for an acknowledgement is ours and the
// peer's to say, but the peer makes it 4.3 s at most: who asks for hours could be gone as long.
func TestPeersAckTimeout(t *testing.T) {
	passive := func(r *rig, asked uint8) uint8 {
		r.listen()
		req := r.req()
		req.Primary.LocalAckTimeout = asked
		r.give(req)
		return r.event(cm.EventConnectRequest).Params.Timeout
	}
	active := func(r *rig, asked uint8) uint8 {
		id, _ := r.connect()
		rep := rep(id)
		rep.TargetAckDelay = asked
		r.give(rep)
		return r.event(cm.EventConnectResponse).Params.Timeout
	}
	for _, tt := range []struct {
		name        string
		connect     func(r *rig, asked uint8) uint8
		own         uint8 // Config.PacketLifeTime, 0 for the default
		asked, want uint8
	}{
		{"passive", passive, 0, 14, 14},
		{"passive, as Linux asks", passive, 0, 19, 19},
		{"passive, hours", passive, 0, 31, 20},
		{"passive, ours is longer", passive, 22, 31, 23},
		{"active, as Linux asks", active, 0, 15, 17},
		{"active, hours", active, 0, 31, 20},
	} {
		r := newRig(t, cm.Config{PacketLifeTime: tt.own})
		if got := tt.connect(r, tt.asked); got != tt.want {
			t.Errorf("%s: asked for %d it is %d, want %d", tt.name, tt.asked, got, tt.want)
		}
	}
}

// TestOwnAckTimeout: who wants to wait for hours himself does.
func TestOwnAckTimeout(t *testing.T) {
	r := newRig(t, cm.Config{})
	id, err := r.m.Connect(r.now, cm.Connect{
		Path: r.path, Service: service, PathMTU: 1, AckTimeout: 31,
	})
	must(t, err)
	if _, sent := r.m.NextMAD(make([]byte, cm.MADLen)); !sent {
		t.Fatal("nothing is sent")
	}
	r.give(rep(id))
	if got := r.event(cm.EventConnectResponse).Params.Timeout; got != 31 {
		t.Errorf("it is %d", got)
	}
	r.pass(clock.Second)
}
