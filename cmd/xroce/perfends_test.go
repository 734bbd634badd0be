package main

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce/cm"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// TestPerfHopLimit: -L is in the packets of the end that was given it, whatever it is
// sent over.
func TestPerfHopLimit(t *testing.T) {
	for _, flags := range []string{"", "-c UC", "-c UD -s 100", "--ipv6"} {
		b, network := simBench(t)
		seen := map[int]int{}
		network.Observe(func(e *sim.Event) {
			var p wire.Packet
			if e.Kind == sim.Sent && p.Decode(e.Frame, nil) == wire.OK {
				seen[int(p.HopLimit)]++
			}
		})
		server, client := perfPair(t, b, "send-lat", "-n 20 "+flags, "-L 7")
		if client.code != exitOK || server.code != exitOK {
			t.Fatalf("%s%s", client.stderr, server.stderr)
		}
		network.Observe(nil)
		if len(seen) != 2 || seen[7] == 0 || seen[64] == 0 {
			t.Errorf("%s: packets by hop limit: %v", flags, seen)
		}
	}
}

// TestPerfManagedAttributes: with -R, -T is the type of service of what is sent, and
// --retry_count what the connection is asked for.
func TestPerfManagedAttributes(t *testing.T) {
	t.Parallel()
	b, network := simBench(t)
	marked, retries := 0, -1
	network.Observe(func(e *sim.Event) {
		var p wire.Packet
		if e.Kind != sim.Sent || p.Decode(e.Frame, nil) != wire.OK {
			return
		}
		if p.BTH.DestQP != 1 && p.TClass == 8 {
			marked++
		}
		if r, err := cm.ParseREQ(p.Payload); err == nil && p.BTH.DestQP == 1 {
			if h, err := cm.ParseHeader(p.Payload); err == nil && h.Attribute == cm.AttributeREQ {
				retries = int(r.RetryCount)
			}
		}
	})
	args := []string{"perf", "send-lat", "-R", "-e", "-n", "5"}
	server := b.startListening(t, append(args, "-d", "xr1")...)
	client := b.run(t, append(args, "-d", "xr2", "-T", "8", "--retry_count", "3", "-u", "20",
		"192.0.2.1")...)
	server.wait(t)
	network.Observe(nil)
	if client.code != exitOK || server.code != exitOK || marked < 5 || retries != 3 {
		t.Errorf("%d packets marked, %d retries\n%s%s", marked, retries, client.stderr,
			server.stderr)
	}
	for line, want := range map[string]string{
		"send-bw -R -T 4 --tclass 4": "two names",
		"send-bw -R -T 256":          "not in 0..255",
		"send-bw --retry_count 3":    "queue pairs of -R",
		"send-bw -R --retry_count 8": "not in 0..7",
		"send-bw -R --flow_label 5":  "does not go with -R",
	} {
		i := b.run(t, append([]string{"perf"}, strings.Fields(line+" -d xr1")...)...)
		i.exited(t, exitUsage)
		contains(t, i.stderr, want)
	}
}

// TestPerfManagedGID: with -R what -x chooses is where a server listens and a client is. Without it
// that is where the route leads, of either version of IP.
func TestPerfManagedGID(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, _ := simBench(t)
	args := []string{"perf", "send-bw", "-R", "-n", "10", "-u", "20"}
	server := b.startListening(t, append(args, "-d", "xr1", "-x", "0")...)
	client := b.run(t, append(args, "-d", "xr2", "fe80::ff:fe00:1")...)
	server.wait(t)
	for _, i := range []*invocation{client, server} {
		i.exited(t, exitOK)
		contains(t, i.stdout, " GID index       : 0\n", "GID: 254:128:00:00:00:00:00:00")
	}
	server = b.startListening(t, append(args, "-d", "xr1")...)
	client = b.run(t, append(args, "-d", "xr2", "-x", "0", "192.0.2.1")...)
	client.exited(t, exitFailure) // from an address of the link
	contains(t, client.stderr, "fe80::ff:fe00:2")
	server.cancel()
	server.exited(t, exitOK)
}

// TestChosenAddr: with -R the address of a GID must be enough to choose it by.
func TestChosenAddr(t *testing.T) {
	link := netip.MustParseAddr("fe80::1")
	table := []wire.GID{
		wire.GIDFromAddr(link), wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		wire.GIDFromAddr(link),
	}
	for _, tt := range []struct {
		index      int
		netdev     string
		peer, want string
	}{
		{0, "eth0", "", ""},
		{0, "eth0", "fe80::2", ""},
		{0, "eth0", "fe80::2%eth0", ""},
		{0, "eth0", "fe80::2%10", ""},
		{1, "eth0", "some.name", ""},
		{2, "eth0.5", "fe80::2%eth0.5", "the address of index 0"},
		{0, "eth0", "fe80::2%eth0.5", "index 0 is on eth0"},
		{0, "eth0", "fe80::2%11", "index 0 is on eth0"},
	} {
		e := engine.GIDEntry{
			Index: tt.index, GID: table[tt.index], Netdev: tt.netdev, Ifindex: 10,
		}
		got, err := chosenAddr(e, table, tt.peer)
		if tt.want == "" && (err != nil || got != e.GID.Addr()) ||
			tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %s, %v", tt, got, err)
		}
	}
}

// TestPerfMapped: with --mmap the data lands in the file, behind the offset; what is too
// short, or no file, is refused.
func TestPerfMapped(t *testing.T) {
	b, _ := simBench(t)
	name := filepath.Join(t.TempDir(), "memory")
	const offset, length = 5000, 1 << 15
	if err := os.WriteFile(name, make([]byte, offset+length), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := "--mmap " + name + " --mmap-offset " + strconv.Itoa(offset)
	for _, odp := range []string{"", " --odp"} {
		_, client := perfPair(t, b, "read-bw", "-n 20 -s 10000", flags+odp)
		client.exited(t, exitOK)
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got[:offset], make([]byte, offset)) ||
			bytes.Equal(got[offset:][:length/4], make([]byte, length/4)) {
			t.Errorf("the memory is not in the file behind its offset%s", odp)
		}
	}
	client := b.run(t, strings.Fields("perf read-bw -d xr2 -s 100000 "+flags+" 127.0.0.1")...)
	client.exited(t, exitFailure)
	contains(t, client.stderr, "--mmap", "which has "+strconv.Itoa(offset+length))
	device := b.run(t, "perf", "read-bw", "-d", "xr1", "--mmap", "/dev/null")
	device.exited(t, exitFailure)
	contains(t, device.stderr, "/dev/null is no regular file")
}

// TestPerfEndsDiffer: two ends that were told different things both fail with the reason,
// and neither prints a result, nor writes one to a file.
func TestPerfEndsDiffer(t *testing.T) {
	b, _ := simBench(t)
	file := filepath.Join(t.TempDir(), "out.json")
	server, client := perfPair(t, b, "send-bw", "-s 100",
		"-n 1234 --out_json --out_json_file="+file)
	for _, i := range []*invocation{server, client} {
		i.exited(t, exitFailure)
		contains(t, i.stderr, "the ends were started differently", "-n 1000", "-n 1234")
		if strings.Contains(i.stdout, "#bytes") {
			t.Errorf("printed %q", i.stdout)
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%s: %v", file, err)
	}
}

// TestPerfHugePages: memory of huge pages, or the reason why there is none.
func TestPerfHugePages(t *testing.T) {
	b, _ := simBench(t)
	line := strings.Fields("perf write-bw -n 20 -s 3000000 --use_hugepages -u 20 -d")
	server := b.start(t, append(line, "xr1", "-p", "0")...)
	select {
	case <-server.ready: // there are some here
		args := strings.Fields("perf write-bw -n 20 -s 3000000 -u 20 -d xr2 127.0.0.1 -p")
		b.run(t, append(args, server.listenPort(t))...).exited(t, exitOK)
		server.wait(t).exited(t, exitOK)
		return
	case <-server.done:
	case <-time.After(timeout.Scaled(time.Minute)):
		t.Fatal("neither ready nor over")
	}
	server.exited(t, exitUnsupported)
	contains(t, server.stderr, "too few reserved huge pages", "vm.nr_hugepages")
	free, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n, _ := strconv.Atoi(strings.TrimSpace(string(free))); err == nil && n >= 6 {
		t.Errorf("%d huge pages are free", n)
	}
}

// TestPerfPeerVanishes: a client that is interrupted does not leave the server
// behind.
func TestPerfPeerVanishes(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	server := b.start(t, "perf", "send-bw", "-d", "xr1", "-p", "0", "-D", "1000", "-u", "20")
	port := server.listenPort(t)
	begun := make(chan struct{})
	b.change = func(a *app) { a.stdout = &hookWriter{a.stdout, "#bytes", begun} }
	client := b.start(t, "perf", "send-bw", "-d", "xr2", "-p", port, "-D", "1000", "-u", "20",
		"127.0.0.1")
	<-begun
	client.cancel()
	if client.wait(t); client.code != exitInterrupted {
		t.Errorf("client: code %d, %s", client.code, client.stderr)
	}
	if server.wait(t); server.code != exitFailure {
		t.Errorf("server: code %d, %s", server.code, server.stderr)
	}
	contains(t, server.stderr, "closed the connection")
}
