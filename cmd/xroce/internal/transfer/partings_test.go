package transfer

import (
	"testing"

	"xroce/engine/sim"
)

// TestPartings: a host of whom many connections are ending is to get no other one until some have
// ended, and other hosts are none of that.
func TestPartings(t *testing.T) {
	t.Parallel() // it waits most of the time
	p := Partings{PerSource: 3}
	many, few := hostOf("192.0.2.1").Host, hostOf("192.0.2.2").Host
	for n := range 5 {
		if p.Many(many) != (n >= 3) || p.Many(few) {
			t.Errorf("%d are ending: %t, and %t of the other", n, p.Many(many), p.Many(few))
		}
		p.begin(many)
	}
	p.begin(few)
	for range 5 {
		p.end(many)
	}
	p.end(few)
	if p.Many(many) || len(p.of) != 0 {
		t.Errorf("kept of hosts that have none: %v", p.of)
	}
	r := newRig(t, 1, sim.Faults{})
	_, theirs := r.connect(t, client, server)
	p.Close(theirs, few)
	<-theirs.Conn.Done()
	if len(p.of) != 0 {
		t.Errorf("kept: %v", p.of)
	}
}
