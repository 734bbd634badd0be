package main

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"xroce/engine/sim"
)

// startListening starts a server of rdma_cm and waits until it listens.
func (b bench) startListening(t *testing.T, args ...string) *invocation {
	t.Helper()
	i := b.start(t, args...)
	i.listenPort(t)
	return i
}

// exited fails the test unless a command ended with a code.
func (i *invocation) exited(t *testing.T, code int) {
	t.Helper()
	if i.wait(t); i.code != code {
		t.Errorf("code %d, not %d; stdout:\n%s\nstderr:\n%s", i.code, code, i.stdout, i.stderr)
	}
}

func TestRping(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	server := b.startListening(t, "rping", "-d", "xr1", "-s", "-v")
	client := b.run(t, strings.Fields("rping -d xr2 -c -a 192.0.2.1 -C 2 -V -v")...)
	client.exited(t, exitOK)
	server.exited(t, exitOK)
	// What rping prints, and two lines of ours.
	const lines = "ping data: rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\n" +
		"ping data: rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs\n"
	if rest, ok := strings.CutPrefix(client.stdout, lines); !ok || strings.Count(rest, "\n") != 2 ||
		!strings.HasPrefix(rest, "2 pings of 192.0.2.1:7174, round trip min/avg/max/stddev ") ||
		!strings.Contains(rest, "\n50/90/99/99.9% of them within ") {
		t.Errorf("client:\n%s", client.stdout)
	}
	want := strings.ReplaceAll(lines, "ping data", "server ping data") + "2 pings answered\n"
	if server.stdout != want {
		t.Errorf("server:\n%s", server.stdout)
	}
}

func TestRpingJSON(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	server := b.startListening(t, "rping", "-d", "xr1", "-s", "-j", "-p", "7000", "-S", "100")
	client := b.run(t, strings.Fields("rping -d xr2 -c -a 192.0.2.1 -C 3 -S 99 -p 7000 -j")...)
	server.wait(t)
	for name, i := range map[string]*invocation{"client": client, "server": server} {
		i.exited(t, exitOK)
		var r conversationReport
		if err := json.Unmarshal([]byte(i.stdout), &r); err != nil {
			t.Fatalf("%s: %v in %s", name, err, i.stdout)
		}
		if r.Tool != "rping" || r.Role != name || r.Messages != 3 || r.Connections != 1 ||
			(r.RoundTrip != nil) != (name == "client") {
			t.Errorf("%+v", r)
		}
		if trip := r.RoundTrip; trip != nil && (trip.Min <= 0 || trip.Min > trip.P50 ||
			trip.P50 > trip.P90 || trip.P90 > trip.P99 || trip.P99 > trip.P999 ||
			trip.P999 > trip.Max || trip.Stddev > trip.Max-trip.Min) {
			t.Errorf("%+v", trip)
		}
	}
}

// TestRpingInterruptedJSON: a client without an end tells what it has measured when it is
// interrupted, to programs too.
func TestRpingInterruptedJSON(t *testing.T) {
	t.Parallel()
	b, network := simBench(t)
	server := b.startListening(t, "rping", "-d", "xr1", "-s")
	var frames atomic.Int64
	enough := make(chan struct{})
	network.Observe(func(*sim.Event) {
		if frames.Add(1) == 1000 {
			close(enough)
		}
	})
	client := b.start(t, strings.Fields("rping -d xr2 -c -a 192.0.2.1 -j")...)
	select {
	case <-enough:
	case <-client.done:
	}
	client.cancel()
	client.wait(t).exited(t, exitInterrupted)
	server.wait(t)
	var r conversationReport
	if err := json.Unmarshal([]byte(client.stdout), &r); err != nil {
		t.Fatalf("%v in %q", err, client.stdout)
	}
	if r.Messages < 1 || r.RoundTrip == nil || r.RoundTrip.Min <= 0 {
		t.Errorf("%+v", r)
	}
}

func TestRpingPersistentEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	server := b.startListening(t, "rping", "-d", "xr1", "-s", "-P")
	b.run(t, strings.Fields("rping -d xr2 -c -a 192.0.2.1 -C 2 -V")...).exited(t, exitOK)
	server.cancel()
	server.exited(t, exitOK)
}

func TestRpingNobodyListens(t *testing.T) {
	b, _ := simBench(t)
	server := b.startListening(t, "rping", "-d", "xr1", "-s")
	client := b.run(t, strings.Fields("rping -d xr2 -c -a 192.0.2.1 -C 2 -p 1")...)
	client.exited(t, exitFailure)
	contains(t, client.stderr, "rejected: ", "start the server first")
	server.cancel()
	server.exited(t, exitOK)
}

func TestUcmatose(t *testing.T) {
	b, _ := simBench(t)
	server := b.startListening(t, strings.Fields("ucmatose -d xr1 -c 2 -C 3 -S 5000")...)
	client := b.run(t, strings.Fields(
		"ucmatose -d xr2 -s 192.0.2.1 -b 192.0.2.2 -c 2 -C 3 -S 5000 -t 0x20 -a 18 -m -f ip")...)
	client.exited(t, exitOK)
	server.exited(t, exitOK)
	contains(t, client.stdout, "cmatose: starting client\n", "return status 0\n")
	contains(t, server.stdout, "cmatose: starting server\n", "return status 0\n")

	client = b.run(t, strings.Fields("ucmatose -d xr3 -s 192.0.2.9")...)
	client.exited(t, exitFailure)
	contains(t, client.stderr, "no neighbour")
}

func TestUdaddy(t *testing.T) {
	b, _ := simBench(t)
	server := b.startListening(t, strings.Fields("udaddy -d xr1 -c 2 -C 3 -S 500 --json")...)
	client := b.run(t, strings.Fields(
		"udaddy -d xr2 -s 192.0.2.1 -c 2 -C 3 -S 500 -p 0x111 -P UDP --json")...)
	server.wait(t)
	for name, i := range map[string]*invocation{"client": client, "server": server} {
		i.exited(t, exitOK)
		var r conversationReport
		if err := json.Unmarshal([]byte(i.stdout), &r); err != nil {
			t.Fatalf("%s: %v in %s", name, err, i.stdout)
		}
		if r.Tool != "udaddy" || r.Role != name || r.Messages != 6 || r.Connections != 2 {
			t.Errorf("%+v", r)
		}
	}
}

func TestRDMAServerAndClient(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	server := b.startListening(t, "rdma-server", "-d", "xr1")
	client := b.run(t, "rdma-client", "-d", "xr2", "-s", "192.0.2.1")
	client.exited(t, exitOK)
	server.exited(t, exitOK)
	if client.stdout != "rdma_client: start\nrdma_client: end 0\n" {
		t.Errorf("client: %q", client.stdout)
	}
	if server.stdout != "rdma_server: start\nrdma_server: end 0\n" {
		t.Errorf("server: %q", server.stdout)
	}
}

// What only the originals can do is no mistake of the user's.
func TestConversationUnsupported(t *testing.T) {
	b, _ := simBench(t)
	for _, line := range []string{
		"ucmatose -d xr1 -f gid", "ucmatose -d xr1 -P ib", "udaddy -d xr1 -P ipoib",
		"udaddy -d xr1 -p 2",
	} {
		b.run(t, strings.Fields(line)...).exited(t, exitUnsupported)
	}
}

func TestConversationUsage(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct{ line, says string }{
		{"rping -d xr1", "either -s or -c"},
		{"rping -d xr1 -s -c", "either -s or -c"},
		{"rping -d xr1 -c", "needs -a"},
		{"rping -d xr1 -c -a 192.0.2.1 -P", "-P is for servers"},
		{"rping -d xr1 -s -C -1", "-C -1"},
		{"rping -d xr1 -s -S 22", "not in 23..65535"},
		{"rping -d xr1 -s -S 65536", "not in 23..65535"},
		{"rping -d xr1 -s -p 0", "port 0"},
		{"rping -d xr1 -s -p 65536", "port 65536"},
		{"rping -d xr1 -s --backend x", "no backend"},
		{"ucmatose -d xr1 -c 0", "-c 0"},
		{"ucmatose -d xr1 -C 40000", "-C 40000"},
		{"ucmatose -d xr1 -S -1", "-S -1"},
		{"ucmatose -d xr1 -P udp", "-P udp"},
		{"ucmatose -d xr1 -f x", "-f x"},
		{"ucmatose -d xr1 -a 32", "-a 32"},
		{"udaddy -d xr1 -S 4097", "-S 4097"},
		{"udaddy -d xr1 -p 0x106", "-P 0x106"},
		{"udaddy -d xr1 -s 192.0.2.1 -b 192.0.2.2", "-b is for servers"},
		{"rdma-server -d xr1 -p 0", "port 0"},
		{"rdma-client -d xr1", "-s is needed"},
	} {
		i := b.run(t, strings.Fields(c.line)...)
		i.exited(t, exitUsage)
		contains(t, i.stderr, c.says)
	}
}
