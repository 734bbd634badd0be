package msg

import (
	"strings"
	"testing"
)

// TestCountersHaveNames: each counter has a name of its own, a unit and a help text.
func TestCountersHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for id := range CounterCount {
		s := id.Spec()
		if seen[s.Name] || !strings.HasPrefix(s.Name, "msg_") || len(s.Name) < 6 || s.Unit == "" ||
			s.Help == "" || id.String() != s.Name {
			t.Errorf("counter %d: %+v", id, s)
		}
		seen[s.Name] = true
	}
	if CounterCount.String() != "unknown" {
		t.Errorf("%v", CounterCount)
	}
	for p := Eager; p < protocolCount; p++ {
		if name := sentBy[p].Spec().Name; name != "msg_sent_"+p.String() {
			t.Errorf("%v is counted by %s", p, name)
		}
	}
}

// TestBytesAreCopiedOnceAtEachEnd: a message in a slot, small or large, or in fragments, is copied
// out once and in once, as long as it is; a rendezvous by keys is not copied.
func TestBytesAreCopiedOnceAtEachEnd(t *testing.T) {
	const length = 5000
	for p, want := range map[Protocol][4]uint64{
		Auto: {length, length, 0, 0}, Fragments: {length, length, 0, 0},
		Get: {0, 0, length, 0}, Put: {0, 0, 0, length},
	} {
		d := newDuo(t, Config{Protocol: p})
		s := d.send(pattern(1, length))
		a, b := d.a.endpoint.Snapshot(), d.b.endpoint.Snapshot()
		got := [4]uint64{a[BytesCopiedOut], b[BytesCopiedIn], b[BytesRead], a[BytesWritten]}
		if got != want || a[sentBy[s.Choice.Protocol]] != 1 {
			t.Errorf("%v: copied out, in, read, written: %v, not %v", s.Choice, got, want)
		}
		if a[SentControl] != b[RecvControl] || a[SentFrames] != b[RecvFrames] {
			t.Errorf("%v: %v\n%v", s.Choice, a, b)
		}
	}
}
