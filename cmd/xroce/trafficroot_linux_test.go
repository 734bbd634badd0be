package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xroce/engine/capture"
	"xroce/xsk/vethpair"
)

// few frames have room in the ring of a veth device (drivers/net/veth.c, VETH_RING_SIZE), so
// none is lost however late a busy machine takes them.
const few = "200"

// meetSink runs a sink in namespace B and a generator in A, both to their ends, and returns
// what they said as JSON. A sink that was not scheduled while it was asked has frames and told
// nobody of them: then both run again, for some time.
func meetSink(t *testing.T, in func(vethpair.Side) bench, sink, gen []string) (
	g pktgenReport, s sinkReport,
) {
	t.Helper()
	counts := slices.Contains(sink, "-n") // such a sink ends before it is asked
	patiently(func() bool {
		g, s = meetSinkOnce(t, in, sink, gen)
		if s.Segments != nil && s.Segments.Expired > 0 {
			return false // the generator was not scheduled in the middle of a frame
		}
		return counts || g.Received != nil || s.Received == 0
	})
	return g, s
}

// meetSinkOnce is meetSink without patience.
func meetSinkOnce(t *testing.T, in func(vethpair.Side) bench, sink, gen []string) (
	g pktgenReport, s sinkReport,
) {
	t.Helper()
	b := in(vethpair.B).start(t, append([]string{"sink", "-d", "xr0", "--json"}, sink...)...)
	b.awaitReady(t)
	a := in(vethpair.A).run(t, append([]string{"pktgen", "-d", "xr0", "--json"}, gen...)...)
	if a.code != exitOK {
		b.cancel()
	}
	b.wait(t)
	if a.code != exitOK || b.code != exitOK {
		t.Fatalf("pktgen: %d, %s\nsink: %d, %s", a.code, a.stderr, b.code, b.stderr)
	}
	if err := json.Unmarshal([]byte(a.stdout), &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b.stdout), &s); err != nil {
		t.Fatal(err)
	}
	return g, s
}

// TestRootPktgen: every kind of frame goes over a real wire, and both ends agree on all of it.
func TestRootPktgen(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	v4, v6 := p.B.IPv4.Addr().String(), p.B.IPv6.Addr().String()
	for name, gen := range map[string][]string{
		"udp": {"--to", v4, "--size", "64"},
		"ipv6": {
			"--to", v6, "--size", "random:82-1514", "--vary", "src_port=2000-2100", "--vary",
			"tos=0-255",
		},
		"pattern":  {"--to", v4, "--size", "64*7,594*4,1514", "--payload", "0xdeadbeef"},
		"ethernet": {"--to", v4, "--kind", "ethernet", "--size", "60-1514/10"},
		"tagged":   {"--to", v4, "--vlan", "5", "--flows", "7", "--size", "66,594"},
		"roce": {
			"--to", v4, "--kind", "roce", "--opcodes", "UC_WRITE_FIRST,UC_WRITE_LAST",
			"--dest-qp", "17", "--rkey", "5",
		},
		"v1": {"--to", v6, "--kind", "roce", "--roce-v1", "--payload", "random"},
	} {
		t.Run(name, func(t *testing.T) {
			var sink []string
			if name == "v1" {
				sink = []string{"--ethertype", "0x8915"}
			}
			answered := name != "tagged" // no VLAN of that host, so answers do not arrive
			if !answered {
				sink = []string{"-n", few}
			}
			g, s := meetSink(t, in, sink, append(gen, "-n", few, "--rate", "20kpps"))
			if g.Sent != 200 || s.Received != 200 || s.Lost != 0 || s.BadICRC != 0 ||
				s.Duplicates != 0 || s.Reordered != 0 || s.Kernel != (kernelLoss{}) ||
				(g.Received != nil) != answered || answered && *g.Received != 200 {
				t.Errorf("%+v\n%+v", g, s)
			}
		})
	}
}

// TestRootPktgenAnswer: the generator is told what came, mistakes on purpose are found, and
// thresholds decide.
func TestRootPktgenAnswer(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	to := p.B.IPv4.Addr().String()
	g, s := meetSink(t, in, nil, []string{
		"--to", to, "--kind", "roce", "-n", few, "--fault", "gap=40", "--fault",
		"duplicate=50", "--rate", "20kpps",
	})
	if g.Received == nil || *g.Received != s.Received || s.Lost == 0 || s.Duplicates == 0 ||
		g.Faults["gap"] != s.Lost || g.Faults["duplicate"] != s.Duplicates ||
		*g.Lost != s.Lost {
		t.Errorf("%+v\n%+v", g, s)
	}
	var sink, gen *invocation
	patiently(func() bool { // as in meetSink
		sink = in(vethpair.B).start(t, "sink", "-d", "xr0", "--max-loss", "0.5%")
		sink.awaitReady(t)
		gen = in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", to, "-n", "200", "--fault",
			"gap=20", "--rate", "20kpps", "--max-loss", "20")
		sink.wait(t)
		return !strings.Contains(gen.stderr, "no sink told")
	})
	if gen.code != exitOK || sink.code != exitFailure {
		t.Errorf("pktgen: %d, %s\nsink: %d", gen.code, gen.stderr, sink.code)
	}
	contains(t, sink.stderr, "--max-loss is 0.5 %")
	contains(t, sink.stdout, "xr0: received 200 of 210 ", "latency [us]", "lost 10 (")
	contains(t, gen.stdout, "the sink received 200, lost 10 (", "fault gap: 10")
}

// TestRootPktgenEncapsulated: frames in the headers of each format go over a real wire, and the
// sink answers.
func TestRootPktgenEncapsulated(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	v4, v6 := p.B.IPv4.Addr().String(), p.B.IPv6.Addr().String()
	for name, to := range map[string]string{
		"raw": v4, "raw6": v6, "rawgrh": v6, "eoib": v4, "ipoib": v4, "vnic": v6,
	} {
		t.Run(name, func(t *testing.T) {
			g, s := meetSink(t, in, []string{"--format", name}, []string{
				"--to", to, "--format", name, "--size", "100-1300/40", "-n", few,
				"--rate", "20kpps",
			})
			if g.Sent != 200 || s.Received != 200 || s.Lost != 0 || s.Foreign != 0 ||
				g.Received == nil || *g.Received != 200 {
				t.Errorf("%+v\n%+v", g, s)
			}
		})
	}
}

// TestRootPktgenSegments: frames that are longer than the interface's go in segments over a real
// wire, and the sink counts them whole and answers.
func TestRootPktgenSegments(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	v4, v6 := p.B.IPv4.Addr().String(), p.B.IPv6.Addr().String()
	for name, to := range map[string]string{"raw": v4, "eoib": v4, "vnic": v6} {
		t.Run(name, func(t *testing.T) {
			g, s := meetSink(t, in, []string{"--format", name}, []string{
				"--to", to, "--format", name, "--size", "100-9000/890", "-n", few,
				"--rate", "20kpps", "--flows", "3", "--fault", "gap=20",
			})
			whole := g.Datagrams
			if g.Sent < 200 || g.Sent > 207 || whole == 0 || whole > 100 || s.Received != whole ||
				s.Lost != g.Faults["gap"] || s.Lost == 0 || s.Foreign != 0 || g.Received == nil ||
				*g.Received != whole || *g.Lost != s.Lost || s.Bytes != g.Bytes {
				t.Errorf("%+v\n%+v", g, s)
			}
			if n := s.Segments; n == nil || n.Received < 150 || n.Complete == 0 ||
				n.Complete > whole || n.Expired+n.Stale+n.CrowdedOut+n.Broken+n.Unfinished > 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestRootSinkAllQueues: a card spreads flows over its queues, and a sink has the frames of all,
// or of the one that it is told.
func TestRootSinkAllQueues(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{Queues: 4, Scatter: vethpair.ScatterFlows})
	gen := []string{
		"--to", p.B.IPv4.Addr().String(), "--flows", "40", "-n", few, "--rate", "20kpps",
	}
	g, s := meetSink(t, in, nil, gen)
	if s.Received != 200 || s.Lost != 0 || s.Flows != 40 || g.Received == nil ||
		*g.Received != 200 {
		t.Errorf("%+v\n%+v", g, s)
	}
	g, s = meetSink(t, in, nil, append(gen, "--queues", "3"))
	if g.Sent != 200 || s.Received != 200 || s.Lost != 0 || s.Flows != 40 {
		t.Errorf("from three: %+v\n%+v", g, s)
	}
	_, s = meetSink(t, in, []string{"--queue", "2", "-n", "5"}, gen)
	if s.Flows == 0 || s.Flows == 40 {
		t.Errorf("on one queue: %+v", s)
	}
}

// TestRootSinkInterrupted: a sink that is interrupted tells what came, and of a generator that
// nobody answers the threshold is not met.
func TestRootSinkInterrupted(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	i := in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", p.B.IPv4.Addr().String(), "-n", "1",
		"--max-loss", "1")
	if i.code != exitFailure {
		t.Errorf("without a sink: %d", i.code)
	}
	contains(t, i.stdout, "no sink told")
	sink := in(vethpair.B).start(t, "sink", "-d", "xr0", "--keep")
	sink.awaitReady(t)
	second := in(vethpair.B).run(t, "sink", "-d", "xr0")
	if second.code != exitFailure {
		t.Errorf("two sinks: %d", second.code)
	}
	contains(t, second.stderr, "XDP program")
	sink.cancel()
	if sink.wait(t); sink.code != exitOK {
		t.Errorf("interrupted: %d, %s", sink.code, sink.stderr)
	}
	contains(t, sink.stdout, "received 0 of 0 frames")
}

// TestRootScenarios: the scenario files that are examples run.
func TestRootScenarios(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	to := p.B.IPv4.Addr().String()
	g, s := meetSink(t, in, nil, []string{"--to", to, "-f", "testdata/scenarios/imix.yaml"})
	if g.Sent != 200 || g.Flows != 16 || s.Flows != 16 || s.Lost != 0 {
		t.Errorf("%+v\n%+v", g, s)
	}
	g, s = meetSink(t, in, nil, []string{"--to", to, "-f", "testdata/scenarios/write-burst.yaml"})
	if g.Sent != 240 || s.Received+s.BadICRC != 240 || s.BadICRC != g.Faults["bad_icrc"] ||
		s.Lost != g.Faults["gap"]+s.BadICRC || s.Marked != 60 {
		t.Errorf("%+v\n%+v", g, s)
	}
}

// TestRootFuzz: a peer of ours bears malformed packets, answers some, and still does its work;
// what was sent is the same the next time.
func TestRootFuzz(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	server := in(vethpair.B).start(t, "serve", "-d", "xr0", "--once", "--insecure", "--dir",
		t.TempDir())
	server.listenPort(t)
	to := p.B.IPv4.Addr().String()
	var first fuzzReport
	for i := range 2 {
		fuzz := in(vethpair.A).run(t, "fuzz", "-d", "xr0", "--json", "--seed", "5", "-n", "3000",
			"--rate", "20kpps", "--wait", "50ms", to)
		var r fuzzReport
		if err := json.Unmarshal([]byte(fuzz.stdout), &r); err != nil {
			t.Fatalf("%v in %s, %s", err, fuzz.stdout, fuzz.stderr)
		}
		if r.Sent != 3000 || len(r.Made) != 10 {
			t.Errorf("%+v", r)
		}
		if i == 0 {
			first = r
		} else if !maps.Equal(first.Made, r.Made) {
			t.Errorf("%v, and then %v", first.Made, r.Made)
		}
	}
	name, want := randomFile(t, 100_000, 0o600)
	c := in(vethpair.A).run(t, "copy", name, to+":f")
	if server.wait(t); c.code != exitOK || server.code != exitOK {
		t.Errorf("after it %d bytes: copy %d, %s; serve %d, %s", len(want), c.code, c.stderr,
			server.code, server.stderr)
	}
}

// TestRootSearch: a search finds a rate that the wire bears, tells of its trials and draws them;
// without a sink there is nothing to find.
func TestRootSearch(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	to := p.B.IPv4.Addr().String()
	plot := filepath.Join(t.TempDir(), "found.svg")
	search := []string{
		"pktgen", "-d", "xr0", "--to", to, "--rfc2544", "--size", "64,512", "--duration", "10ms",
		"--max-loss", "100", "--json", "--plot", plot,
	}
	i := in(vethpair.A).run(t, search...)
	if i.code != exitFailure {
		t.Errorf("without a sink: code %d", i.code)
	}
	contains(t, i.stderr, "no sink answers")
	sink := in(vethpair.B).start(t, "sink", "-d", "xr0", "--keep")
	sink.awaitReady(t)
	patiently(func() bool { // as in meetSink; and a trial is so short that it may be slept through
		i = in(vethpair.A).run(t, search...)
		return !strings.Contains(i.stderr, "no sink answers") &&
			!strings.Contains(i.stderr, "nothing was sent")
	})
	var r searchReport
	if err := json.Unmarshal([]byte(i.stdout), &r); err != nil || i.code != exitOK {
		t.Fatalf("%v, code %d, %s", err, i.code, i.stderr)
	}
	for _, row := range r.Rows {
		// As fast as it goes was good enough: there is no larger rate to look for.
		if row.PPS != row.Most || row.PPS <= 0 || row.Trials != 1 || len(row.Tried) != 1 ||
			!row.Tried[0].Good || row.Sent != row.Recv+row.Lost || row.Latency == nil ||
			row.Latency.Min > row.Latency.Mean || row.Latency.Mean > row.Latency.Max {
			t.Errorf("%+v", row)
		}
	}
	picture, err := os.ReadFile(plot)
	if err != nil || len(r.Rows) != 2 {
		t.Errorf("%d rows, %v", len(r.Rows), err)
	}
	contains(t, string(picture), "<svg ", ">512</text>", "s</text>", "</svg>")
	patiently(func() bool {
		i = in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", to, "--rfc2544", "--kind", "roce",
			"--opcodes", "RC_READ_REQUEST", "--duration", "10ms", "--json")
		return !strings.Contains(i.stderr, "nothing was sent")
	})
	if i.code != exitUsage || !strings.Contains(i.stderr+i.stdout, "a sink can count none") {
		t.Errorf("of frames that are not counted: code %d, %s%s", i.code, i.stderr, i.stdout)
	}
	sink.cancel()
	sink.wait(t)
}

// TestRootPktgenCapture: --capture keeps what a generator sends and what a sink gets, which are
// the same frames.
func TestRootPktgenCapture(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	dir := t.TempDir()
	at := [2]string{filepath.Join(dir, "sent.pcapng"), filepath.Join(dir, "got.pcapng")}
	meetSink(t, in, []string{"-n", few, "--capture", at[1]}, []string{
		"--to", p.B.IPv4.Addr().String(), "--kind", "roce", "-n", few, "--rate", "20kpps",
		"--capture", at[0],
	})
	frames := map[capture.Direction]map[string]int{}
	for i, want := range []capture.Direction{capture.Outbound, capture.Inbound} {
		packets, stats := readCapture(t, at[i])
		frames[want] = map[string]int{}
		for _, p := range packets {
			if p.Dir == want {
				frames[want][string(p.Head)]++
			}
		}
		if stats.Dropped != 0 || stats.Received != uint64(len(packets)) || len(packets) < 200 {
			t.Errorf("%s: %d packets, %+v", at[i], len(packets), stats)
		}
	}
	for frame, n := range frames[capture.Inbound] {
		if frames[capture.Outbound][frame] != n {
			t.Errorf("% x came %d times and was sent %d times", frame, n,
				frames[capture.Outbound][frame])
			break
		}
	}
}

// TestRootTransmit: frames leave as live frames where the peer takes them, several queues at once,
// and a capture has them all; else over the socket with a word, or not at all.
func TestRootTransmit(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{Queues: 2})
	to := p.B.IPv4.Addr().String()
	file := filepath.Join(t.TempDir(), "x.pcapng")
	gen := []string{"--to", to, "-n", few, "--flows", "2", "--vary", "src_port=2000-2100"}
	g, s := meetSink(t, in, nil, append(gen, "--transmit", "xdp", "--queues", "2", "--rate",
		"20kpps", "--capture", file))
	if g.Transmit != "xdp" || g.Because != "" || g.Sent != 200 || g.Dropped != 0 ||
		s.Received != 200 || s.Lost != 0 || s.Duplicates != 0 {
		t.Errorf("%+v\n%+v", g, s) // a thread that moves takes its flow to another ring
	}
	if packets, _ := readCapture(t, file); len(packets) < 200 {
		t.Errorf("the capture has %d packets", len(packets))
	}
	if g, s = meetSink(t, in, nil, gen); g.Transmit != "xdp" || s.Received != 200 {
		t.Errorf("by itself: %+v\n%+v", g, s)
	}
	if g, s = meetSink(t, in, nil, append(gen, "--transmit", "socket")); g.Transmit != "socket" ||
		g.Because != "" || s.Received != 200 {
		t.Errorf("over the socket: %+v\n%+v", g, s)
	}

	command := append([]string{"pktgen", "-d", "xr0", "--json"}, gen...)
	i := in(vethpair.A).run(t, command...)
	if err := json.Unmarshal([]byte(i.stdout), &g); err != nil || i.code != exitOK {
		t.Fatalf("%d, %v: %s", i.code, err, i.stderr)
	}
	if g.Transmit != "socket" || g.Because == "" || g.Sent != 200 || g.Dropped != 0 {
		t.Errorf("without an XDP program at the peer: %+v", g)
	}
	contains(t, i.stderr, "frames go over the socket")
	i = in(vethpair.A).run(t, append(command, "--transmit", "xdp")...)
	if i.code != exitUnsupported || i.stdout != "" {
		t.Errorf("by name: %d, %s", i.code, i.stdout)
	}
	contains(t, i.stderr, "takes no frames from XDP programs")
}
