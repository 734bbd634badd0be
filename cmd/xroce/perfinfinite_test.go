package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestPerfInfiniteJSON: a run without an end is interrupted, and what it has measured until
// then is told, also as JSON and in a file.
func TestPerfInfiniteJSON(t *testing.T) {
	t.Parallel()
	// A client that was not scheduled for most of the time has no result yet: then it is
	// given more.
	for given := 2500 * time.Millisecond; !infiniteJSON(t, given); given *= 2 {
		if given > timeout.Scaled(20*time.Second) {
			t.Fatalf("no result within %v", given)
		}
	}
}

// infiniteJSON interrupts a client some time after its first frame, and reports whether it
// has results.
func infiniteJSON(t *testing.T, given time.Duration) bool {
	t.Helper()
	b, network := simBench(t)
	file := filepath.Join(t.TempDir(), "out.json")
	flags := []string{"perf", "send-bw", "--run_infinitely", "-D", "1", "-u", "20"}
	server := b.start(t, append(flags, "-d", "xr1", "-p", "0")...)
	port := server.listenPort(t)
	var first time.Time
	var once sync.Once
	enough := make(chan struct{})
	network.Observe(func(e *sim.Event) {
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) > given {
			once.Do(func() { close(enough) })
		}
	})
	client := b.start(t, append(flags, "-d", "xr2", "-p", port, "--json", "--out_json",
		"--out_json_file", file, "127.0.0.1")...)
	select {
	case <-enough:
	case <-client.done:
	}
	client.cancel()
	client.wait(t).exited(t, exitInterrupted)
	server.wait(t).exited(t, exitFailure)
	var document struct {
		Results []struct {
			Average float64 `json:"BW_average"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(client.stdout), &document); err != nil {
		t.Fatalf("%v in %q", err, client.stdout)
	}
	if len(document.Results) == 0 {
		return false
	}
	if document.Results[0].Average <= 0 {
		t.Errorf("%+v", document)
	}
	report, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(report), `"BW_average"`) {
		t.Errorf("%q, %v", report, err)
	}
	return true
}
