package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPerfInterval: -i tells what was moved meanwhile, and all of it.
func TestPerfInterval(t *testing.T) {
	b, _ := simBench(t)
	server, client := perfPair(t, b, "write-bw", "-n 100 -s 4096", "-i 0.1 --json")
	client.exited(t, exitOK)
	server.exited(t, exitOK)
	var report struct {
		Intervals []struct {
			Sum struct {
				Bytes uint64
				BPS   float64 `json:"bits_per_second"`
			}
		}
	}
	if err := json.Unmarshal([]byte(client.stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, client.stdout)
	}
	// All come with one completion, in whichever interval that is.
	var sum uint64
	var rate float64
	for _, i := range report.Intervals {
		sum += i.Sum.Bytes
		rate = max(rate, i.Sum.BPS)
	}
	if sum != 100*4096 || rate <= 0 {
		t.Errorf("intervals %+v", report.Intervals)
	}
	_, client = perfPair(t, b, "send-bw", "-n 100 -s 4096 -i 0.1", "")
	client.exited(t, exitOK)
	contains(t, client.stdout, " interval[sec]    #bytes", "    0.00-")
	for line, want := range map[string]string{
		"send-bw -i 0.01":               "-i is 0.1 to",
		"send-bw -i NaN":                "no interval",
		"send-bw -i 1 --run_infinitely": "tells each -D",
		"send-lat -i 1":                 "for bandwidth tests",
		"write-bw -i 1":                 "only answers",
	} {
		i := b.run(t, append([]string{"perf"}, strings.Fields(line+" -d xr1")...)...)
		i.exited(t, exitUsage)
		contains(t, i.stderr, want)
	}
}
