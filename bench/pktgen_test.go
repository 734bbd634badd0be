package main

import "testing"

// TestParseIperfUDP: datagrams that came a second, and what is no result.
func TestParseIperfUDP(t *testing.T) {
	m, err := parseIperfUDP([]byte(
		`{"end":{"sum":{"seconds":2,"packets":1000,"lost_packets":200}}}`))
	if err != nil || m.value != 400 || m.workers[0].Packets != 800 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, text := range []string{
		"", `{"error":"no"}`, `{}`, `{"end":{"sum":{"seconds":1,"packets":5,"lost_packets":5}}}`,
	} {
		if m, err := parseIperfUDP([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, m)
		}
	}
}
