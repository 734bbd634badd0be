package main

import (
	"encoding/json"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/message"
	"xroce/engine/sim"
	"xroce/xsk/vethpair"
)

// startMsg starts a server of a test of messages and waits until it listens.
func startMsg(t *testing.T, b bench, test, flags string) *invocation {
	t.Helper()
	args := append([]string{"msg", test, "-d", "xr1"}, strings.Fields(flags)...)
	return b.startListening(t, args...)
}

// msgPair runs a test at both ends, until both have ended.
func msgPair(t *testing.T, b bench, test, flags string) (server, client *invocation) {
	t.Helper()
	server = startMsg(t, b, test, flags)
	args := append([]string{"msg", test, "-d", "xr2"}, strings.Fields(flags)...)
	client = b.run(t, append(args, "192.0.2.1")...)
	return server.wait(t), client
}

// msgShape is what a test of messages printed, without what differs from run to run.
func msgShape(text string) string {
	lines := strings.Split(perfShape(text), "\n")
	for i, l := range lines {
		if at := strings.Index(l, "192.0.2.2:"); at >= 0 {
			lines[i] = l[:at] + "192.0.2.2:P" + l[at+strings.IndexByte(l[at:], '\t'):]
		}
	}
	return strings.Join(lines, "\n")
}

func TestMsg(t *testing.T) {
	for _, c := range []struct{ name, test, flags string }{
		{"pingpong", "pingpong", "-n 20 --warmup 3"},
		{"pingpong_peers", "pingpong", "-n 10 --peers 3 -e --size 1000 --level matched"},
		{"stream", "stream", "-n 200 --warmup 0 --size 3000 --policy never"},
		{
			"stream_eager", "stream",
			"-n 50 --protocol eager --size 1024 --level delivered --unverified",
		},
		{"rpc", "rpc", "-n 100 --size 100 --reply 9000 --depth 3 --protocol put"},
		{"stream_fragments", "stream", "-n 9 --size 100000 --protocol frag -e --depth 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := simBench(t)
			server, client := msgPair(t, b, c.test, c.flags)
			client.exited(t, exitOK)
			server.exited(t, exitOK)
			if !client.quiet() || !server.quiet() {
				t.Errorf("client: %q, server: %q", client.stderr, server.stderr)
			}
			golden(t, "msg/"+c.name+"_client.golden", msgShape(client.stdout))
			golden(t, "msg/"+c.name+"_server.golden", msgShape(server.stdout))
		})
	}
}

func TestMsgJSON(t *testing.T) {
	b, _ := simBench(t)
	for _, test := range message.Tests {
		server, client := msgPair(t, b, string(test), "-n 50 --size 0 --json")
		for name, i := range map[string]*invocation{"client": client, "server": server} {
			i.exited(t, exitOK)
			var d msgDocument
			if err := json.Unmarshal([]byte(i.stdout), &d); err != nil {
				t.Fatalf("%s: %v in %s", name, err, i.stdout)
			}
			measures := name == "client"
			if d.Test != test || d.Role != name || d.Iterations != 50 || !d.Verified ||
				(d.Latency != nil) != (measures && test != message.Stream) ||
				(d.Rate != nil) != (test == message.Stream || measures && test == message.RPC) {
				t.Errorf("%s %s: %+v", test, name, d)
			}
			if test == message.Stream && name == "server" {
				continue // it sends none
			}
			if n := d.Counters["msg_sent_eager"]; n < 150 {
				t.Errorf("%s %s: counters %v", test, name, d.Counters)
			}
			if len(d.Ways) != 1 || d.Ways[0] != (msgWayJSON{"eager", "fits a slot", 150}) {
				t.Errorf("%s %s: %+v", test, name, d.Ways)
			}
		}
	}
}

// TestMsgEndsDiffer: both ends say in what they differ, with --json in one document.
func TestMsgEndsDiffer(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct{ server, client, says string }{
		{"pingpong --size 8", "pingpong", "--size 8 here, --size 64 at the peer"},
		{"stream", "pingpong", "xroce msg stream, --size 65536, -n 5000 here"},
		{"rpc -n 7 --unverified", "rpc -n 8", "-n 7, --unverified true here, -n 8, --unverified"},
		{"rpc --protocol get", "rpc", "--protocol get here, --protocol auto at the peer"},
		{"rpc --warmup 1 --reply 1", "rpc", "--reply 1, --warmup 1 here, --reply 64, --warmup 100"},
		{"rpc --peers 2", "rpc", "connection 1 of 2: the ends were started differently: --peers 2"},
	} {
		first := strings.Fields(c.server)
		server := startMsg(t, b, first[0], strings.Join(first[1:], " ")+" --json")
		client := b.run(t, append(append([]string{"msg"}, strings.Fields(c.client)...),
			"-d", "xr2", "192.0.2.1")...)
		server.exited(t, exitFailure)
		client.exited(t, exitFailure)
		var f failure
		_, document, _ := strings.Cut(server.stderr, "\n") // behind the line that says ready
		if err := json.Unmarshal([]byte(document), &f); err != nil ||
			!strings.Contains(f.Error, c.says) || server.stdout != "" {
			t.Errorf("server %s: %v, %q, %q", c.server, err, server.stdout, server.stderr)
		}
		contains(t, client.stderr, "the ends were started differently: ", " here, ")
	}
}

// TestMsgPeerVanishes: an end whose peer is gone says so and fails, whether it hung up or the wire
// is cut, in which case it is the idle end that has to find out.
func TestMsgPeerVanishes(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, network := simBench(t)
	for _, cut := range []bool{false, true} {
		server := startMsg(t, b, "stream", "-n 100000000 -e")
		client := b.start(t, "msg", "stream", "-d", "xr2", "-n", "100000000", "-e", "192.0.2.1")
		server.awaitStdout(t, "Depth")
		if cut {
			if err := network.SetFaults(sim.Faults{Drop: 1}); err != nil {
				t.Fatal(err)
			}
			client.exited(t, exitFailure)
		} else {
			client.cancel()
			client.exited(t, exitInterrupted)
		}
		server.exited(t, exitFailure)
		contains(t, server.stderr, "xroce: after ", " messages of the peer: ")
	}
}

func TestMsgNobodyListens(t *testing.T) {
	b, _ := simBench(t)
	server := startMsg(t, b, "rpc", "")
	client := b.run(t, strings.Fields("msg rpc -d xr2 -p 1 192.0.2.1")...)
	client.exited(t, exitFailure)
	contains(t, client.stderr, "start the server first")
	// Who speaks no messages is refused, and the server goes on waiting.
	stranger := b.run(t, strings.Fields("rping -d xr3 -c -a 192.0.2.1 -C 1 -p 7480")...)
	stranger.exited(t, exitFailure)
	server.cancel()
	server.exited(t, exitOK)
}

func TestMsgUsage(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct{ line, says string }{
		{"pingpong -d xr1 -n 4", "-n 4 is not in 5..100000000"},
		{"pingpong -d xr1 --size -1", "--size -1"},
		{"rpc -d xr1 --reply -1", "--reply -1"},
		{"rpc -d xr1 --depth 0", "--depth 0"},
		{"stream -d xr1 --peers 0", "--peers 0"},
		{"stream -d xr1 --warmup -1", "--warmup -1"},
		{"stream -d xr1 --size 1073741824 --depth 5", "too many"},
		{"stream -d xr1 --protocol x", `"x" is no protocol`},
		{"stream -d xr1 --policy x", "there are first, after, never and auto"},
		{"stream -d xr1 --level x", "buffered, transmitted, delivered and matched"},
		{"stream -d xr1 --after 3", "--after is of --policy after"},
		{"stream -d xr1 --large-mode x", "there are keep, replace and local"},
		{"stream -d xr1 --idle -1s", "--idle -1s is not more than 0"},
		{"stream -d xr1 --pull-window 0", "--pull-window 0 is less than 1"},
		{"stream -d xr1 --chunk 9000000", "chunk 9000000: want 1 to"},
		{"stream -d xr1 --keepalive -1s", "--keepalive -1s is negative"},
		{"explain --size 4 --mtu 0", "packets of 0 bytes"},
		{"stream -d xr1 --eager-limit 99", "eager limit 99: want 100 to 2000"},
		{"stream -d xr1 --slots 0", "--slots 0 is less than 1"},
		{"stream -d xr1 -p 0", "port 0"},
		{"stream -d xr1 a b", "accepts at most 1 arg"},
		{"stream -d xr1,xr2 192.0.2.3", "1 HOST for 2 interfaces: want an address of the server"},
		{"stream -d xr1 192.0.2.3,192.0.2.4", "2 HOSTs for 1 interface: want"},
		{"stream -d xr1,xr2,xr1", `"xr1" twice`},
		{"stream -d xr1,", "an interface without a name"},
		{"stream -d a,b,c,d,e,f,g", "at most 6 interfaces"},
		{"stream -d xr1 --grace -1s", "--grace -1s is negative"},
		{"explain", "which message"},
		{"explain --size -1", "a piece of -1 bytes"},
		{"explain --iov 4,5 --size 8", "are 9 bytes, not the 8"},
		{"explain --size 4 --large 99", "large slots of 99 bytes"},
	} {
		i := b.run(t, strings.Fields("msg "+c.line)...)
		i.exited(t, exitUsage)
		contains(t, i.stderr, c.says, "Usage: xroce msg "+strings.Fields(c.line)[0])
	}
}

func TestMsgExplain(t *testing.T) {
	b, _ := simBench(t)
	for name, flags := range map[string]string{
		"eager":     "--size 64",
		"pieces":    "--iov 100,2000,100 --policy never",
		"provision": "--size 20000 --policy after --after 3",
		"fragments": "--size 100000 --protocol frag",
		"long":      "--size 100000000",
		"put":       "--size 1048576 --protocol put --json",
	} {
		i := b.run(t, append([]string{"msg", "explain"}, strings.Fields(flags)...)...)
		i.exited(t, exitOK)
		golden(t, "msg/explain_"+name+".golden", i.stdout)
	}
}

// TestRootMsg does each test by each protocol between two namespaces.
func TestRootMsg(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200})
	for _, protocol := range msgProtocols {
		for _, flags := range []string{
			"pingpong -n 10 --size 5000", "stream -n 40 --size 100000 --depth 4",
			"rpc -n 10 --size 3000 -e --peers 2",
		} {
			flags += " --warmup 5"
			args := append([]string{"msg"}, strings.Fields(flags+" -d xr0 --protocol "+protocol)...)
			var server, client *invocation
			patiently(func() bool {
				server = in(vethpair.A).startListening(t, args...)
				client = in(vethpair.B).run(t, append(args, p.A.IPv4.Addr().String())...)
				return !gaveUp(client, server.wait(t))
			})
			client.exited(t, exitOK)
			server.exited(t, exitOK)
			contains(t, client.stdout, " messages by ")
		}
	}
}
