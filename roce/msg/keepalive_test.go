package msg

import (
	"testing"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// TestSilentPeerIsAsked: a connection on which nothing was heard for the interval writes nothing,
// once an interval; one that hears of its peer does not. When that is not answered, the end of the
// queue pair is that of the connection.
func TestSilentPeerIsAsked(t *testing.T) {
	const interval = 3 * clock.Second
	d := newDuo(t, Config{Keepalive: interval})
	probes := 0
	d.hold = func(c *Conn, wr *verbs.SendWR) bool {
		if wr.Opcode == verbs.OpWrite && len(wr.SGList) == 0 && c == d.ca {
			probes++
		}
		return false
	}
	tick := func() {
		t.Helper()
		at, ok := d.a.endpoint.NextDeadline()
		if !ok || at > d.now+interval {
			t.Fatalf("the next one is at %v, now %v", at, d.now)
		}
		d.now = max(d.now, at)
		d.a.endpoint.HandleDeadline(d.now)
		d.settle()
	}
	for heard := d.ca.heard; d.now < heard+interval; tick() {
		if probes != 0 {
			t.Fatalf("asked at %v, heard at %v", d.now, heard)
		}
	}
	if probes != 1 {
		t.Fatalf("%d probes at %v", probes, d.now)
	}
	for range 5 { // the peer speaks between
		d.now = d.ca.heard + interval - 1
		d.send([]byte{1})
		tick()
	}
	if probes != 1 {
		t.Errorf("%d probes of a peer that speaks", probes)
	}
	tick()
	if probes != 2 {
		t.Errorf("%d probes", probes)
	}
	// The peer is gone: the queue pair says so.
	d.hold = func(c *Conn, _ *verbs.SendWR) bool { return c == d.ca }
	tick()
	d.a.endpoint.HandleWork(d.now, d.ca.First(), &verbs.Completion{Status: verbs.StatusRetryExcErr})
	if d.ca.Err() == nil || d.a.endpoint.NextClosed() != d.ca {
		t.Errorf("%v", d.ca.Err())
	}
	if _, ok := d.a.endpoint.NextDeadline(); ok {
		t.Error("it is still asked")
	}
}
