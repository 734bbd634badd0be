package transfer

import (
	"runtime"
	"testing"

	"xroce/engine/sim"
)

// TestPartings: of a source of which many connections are ending, the oldest wait no more, and
// other sources are none of that.
func TestPartings(t *testing.T) {
	p := Partings{PerSource: 3}
	many, few := hostOf("2001:db8::1").Host, hostOf("192.0.2.2").Host
	cut, ends := 0, []func(){p.begin(few, func() { t.Error("another source is cut short") })}
	for n := range 5 {
		ends = append(ends, p.begin(many, func() {
			if cut != n {
				t.Errorf("%d is cut short, and not %d", n, cut)
			}
			cut++
		}))
		if want := max(0, n-2); cut != want {
			t.Errorf("behind %d others %d are cut short, not %d", n, cut, want)
		}
	}
	for _, end := range ends {
		end()
	}
	if len(p.of) != 0 {
		t.Errorf("kept of sources that have none: %v", p.of)
	}
}

// TestPartingIsCutShort: who does not hang up holds a connection no longer than the next ones of
// his source let him.
func TestPartingIsCutShort(t *testing.T) {
	r := newRig(t, 1, sim.Faults{}) // in which the end of a connection is waited for long
	p := Partings{PerSource: 1}
	over := make(chan error, 2)
	source := hostOf("192.0.2.1").Host
	_, first := r.connect(t, client, server)
	_, second := r.connect(t, client, server)
	leave := func(l *Link) { p.Close(l, source); over <- nil }
	go leave(first)
	for begun := 0; begun == 0; runtime.Gosched() {
		p.mu.Lock()
		begun = len(p.of[source])
		p.mu.Unlock()
	}
	if len(over) > 0 {
		t.Error("the peer of the first one is not waited for")
	}
	go leave(second)
	must(t, within(t, over))
	r.node[client].endpoint.Close()
	must(t, within(t, over))
	if len(p.of) != 0 {
		t.Errorf("kept: %v", p.of)
	}
}
