package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// TestPerfDuration: tests that end by time have a result of that time.
func TestPerfDuration(t *testing.T) {
	for test, flags := range map[string]string{
		"send-bw": "--cpu_util", "write-bw": "-b", "send-lat": "", "write-lat": "", "read-lat": "",
		"atomic-bw": "-q 2",
	} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			// Ends that were not scheduled for most of their time count nothing, and have more.
			for d := time.Second; !durationPair(t, test, flags, d); d *= 2 {
				if d > timeout.Scaled(20*time.Second) {
					t.Fatalf("nothing is counted in %v", d)
				}
			}
		})
	}
}

// durationPair runs a test of so long, and reports whether it has counted anything.
func durationPair(t *testing.T, test, flags string, length time.Duration) bool {
	t.Helper()
	b, _ := simBench(t)
	both := fmt.Sprintf("-D %.0f -f 0 %s", length.Seconds(), flags)
	server, client := perfPair(t, b, test, both, "--json")
	for _, unscheduled := range []string{"the peer is through with the test", "no round trip"} {
		if strings.Contains(client.stderr+server.stderr, unscheduled) {
			return false
		}
	}
	if client.code != exitOK || server.code != exitOK {
		t.Fatalf("%s%s", client.stderr, server.stderr)
	}
	var d struct {
		Results []struct {
			Iters   uint64  `json:"n_iterations"`
			Rate    float64 `json:"MsgRate"`
			Average float64 `json:"t_avg"`
			Peak    float64 `json:"BW_peak"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(client.stdout), &d); err != nil || len(d.Results) > 1 {
		t.Fatalf("%v in %s", err, client.stdout)
	}
	if len(d.Results) == 0 || d.Results[0].Iters == 0 {
		return false
	}
	if r := d.Results[0]; r.Rate+r.Average <= 0 || r.Peak != 0 {
		t.Errorf("%+v", r)
	}
	return true
}
