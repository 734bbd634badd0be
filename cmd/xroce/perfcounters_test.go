package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPerfCounters: -W tells what a test has added to counters, by the names that the user gave.
func TestPerfCounters(t *testing.T) {
	b, _ := simBench(t)
	server, client := perfPair(t, b, "send-bw", "-n 40 -s 64 -m 1024",
		"-W rdma_sends,hw_counters/rdma_recvs,sq_posted")
	client.exited(t, exitOK)
	server.exited(t, exitOK)
	const want = "\trdma_sends=40\n\thw_counters/rdma_recvs=0\n\tsq_posted=0\n\n"
	if !strings.HasSuffix(client.stdout, "---\n"+want) {
		t.Errorf("%s", client.stdout)
	}
	if strings.Contains(server.stdout, "rdma_sends") {
		t.Errorf("%s", server.stdout)
	}
	_, client = perfPair(t, b, "send-bw", "-n 40 -s 64", "--report-counters=rdma_sends --json")
	var report struct {
		RoCE struct {
			Report []struct {
				Name       string
				Difference int
			} `json:"report_counters"`
		}
	}
	if err := json.Unmarshal([]byte(client.stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, client.stdout)
	}
	if r := report.RoCE.Report; len(r) != 1 || r[0].Name != "rdma_sends" || r[0].Difference != 40 {
		t.Errorf("%+v", r)
	}
	for list, want := range map[string]string{
		"rdma_sends,nonsense":    "-W nonsense: there is no such counter",
		"counters/":              "-W counters/: there is no such",
		strings.Repeat(",", 300): "301 counters are more than 256",
	} {
		i := b.run(t, "perf", "send-bw", "-d", "xr1", "-W", list)
		i.exited(t, exitUsage)
		contains(t, i.stderr, want)
	}
}

// TestPerfManagedExchange: with -z rdma_cm has the exchange, of each type, and no queue pair.
func TestPerfManagedExchange(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, line := range []string{
		"send-bw -n 100 -s 5000 -q 2", "send-lat -n 50 -c UC", "send-bw -n 50 -c UD -s 100",
		"read-lat -n 50 -e", "send-bw -n 50 -c UD -s 100 -g",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel() // each waits for seconds until its connection is forgotten
			b, _ := simBench(t)
			args := append([]string{"perf"}, strings.Fields(line+" -u 20 -z")...)
			server := b.startListening(t, append(args, "-d", "xr1")...)
			client := b.run(t, append(args, "-d", "xr2", "192.0.2.1")...)
			server.wait(t)
			for _, i := range []*invocation{client, server} {
				i.exited(t, exitOK)
				contains(t, i.stdout, "rdma_cm QPs\t : OFF", "Data ex. method : rdma_cm")
			}
		})
	}
	b, _ := simBench(t)
	server := b.startListening(t, "perf", "send-bw", "-z", "-d", "xr1")
	client := b.run(t, "perf", "send-bw", "-R", "-d", "xr2", "192.0.2.1")
	server.wait(t)
	for _, i := range []*invocation{client, server} {
		i.exited(t, exitFailure)
		contains(t, i.stderr, "started differently", "-z")
	}
	both := b.run(t, "perf", "send-bw", "-z", "-R")
	both.exited(t, exitUsage)
	contains(t, both.stderr, "choose one")
}
