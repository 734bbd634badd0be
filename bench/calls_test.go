package main

import (
	"testing"

	"xroce/roce/counter"
)

// TestCalls: a call is two packets in all where acknowledges ride, four where they do not.
func TestCalls(t *testing.T) {
	needMachine(t)
	for _, r := range quickly(t, "rpc-64", 1).Cases[0].Rows {
		if len(r.Workers) == 0 || r.Value == 0 {
			continue // it gave up, or was starved, and was tried again
		}
		calls, sent := r.Workers[0].Total, uint64(0)
		if calls < 500 {
			continue // it was hardly scheduled: to connect took as many packets, or to ask again
		}
		for _, w := range r.Workers {
			sent += w.Counters[counter.SentPkts.String()]
		}
		least, most := 3*calls, 5*calls
		if r.Variant == piggybacked {
			least, most = 2*calls, 3*calls
		}
		if sent < least || sent > most {
			t.Errorf("%s: %d packets for %d calls", r.Variant, sent, calls)
		}
	}
}
