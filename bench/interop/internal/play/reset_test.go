package play

import (
	"testing"

	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// TestMiddle: a reset begins when a quarter of the data has passed, and the transfer does not end
// before the reset is over.
func TestMiddle(t *testing.T) {
	w := &watch{}
	m := w.middleOf(8)
	data, ack := &wire.Packet{Payload: make([]byte, 8)}, &wire.Packet{}
	see := func(p *wire.Packet) (lost bool) { return w.each(softroce.A, p) }
	begun := func() bool {
		select {
		case <-m.begun:
			return true
		default:
			return false
		}
	}
	for n := 1; n <= 6; n++ {
		if see(ack) || see(data) {
			t.Errorf("packet %d was lost", n)
		}
		if begun() != (n > 2) {
			t.Errorf("begun after %d packets: %v", n, begun())
		}
	}
	if !see(data) || see(ack) {
		t.Error("the rest of the data must wait, and nothing else")
	}
	m.end(w)
	if see(data) {
		t.Error("lost when the reset was over")
	}
}

func TestCountersIn(t *testing.T) {
	const document = "{\n  \"roce\": {\"counters\": {\"mtu_changes\": 2}}\n}\n"
	for _, log := range []string{"", "time=now msg=\"the MTU {\"\n"} {
		got, err := countersIn(log + document + "level=INFO msg=end\n")
		if err != nil || got["mtu_changes"] != 2 {
			t.Errorf("%v, %v", got, err)
		}
	}
	for _, text := range []string{"", "xroce: it failed\n", "{\n \"roce\": "} {
		if got, err := countersIn(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
