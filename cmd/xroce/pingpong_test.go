package main

import (
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// patientTimeout is the code of a local ACK timeout of 1.07 s, which queue pairs wait eight times:
// the other end is on the same machine, which may be busy.
const patientTimeout = 18

// pingpongLines are the lines of ibv_rc_pingpong, which scripts read.
var pingpongLines = regexp.MustCompile(
	`^  local address:  LID 0x0000, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, GID ::ffff:192\.0\.2\.\d
  remote address: LID 0x0000, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, GID ::ffff:192\.0\.2\.\d
  progress mode:  (?:direct|busy|background)
(\d+) bytes in \d+\.\d\d seconds = \d+\.\d\d Mbit/sec
(\d+) iters in \d+\.\d\d seconds = \d+\.\d\d usec/iter
$`)

func TestPingpong(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{
		{"-s", "1", "-n", "50"},
		{"-s", "4096", "-n", "50", "-c"},
		{"-s", "65536", "-n", "20", "-m", "4096", "-c", "-e"},
		{"-s", "9999", "-n", "20", "-m", "256", "-r", "1", "-c", "-e"},
		{"-s", "5000", "-n", "20", "-r", "2", "-c", "--busy"},
		{"-n", "20", "-c", "--mode", "background"},
		{"-n", "20", "-c", "--mode", "busy"},
		{"--type", "uc", "-s", "9999", "-n", "20", "-c"},
		{"--type", "uc", "-n", "20", "-c", "-e"},
		{"--type", "ud", "-n", "20", "-c"},
		{"--type", "ud", "-s", "1", "-n", "20", "-c", "-e"},
		{"--type", "srq", "-q", "1", "-n", "20", "-c"},
		{"-n", "20", "-c", "--odp"},
		{"-n", "20", "-c", "-u", "19"},
		{"--type", "srq", "-q", "1", "-n", "20", "-c", "-o", "-e"},
	} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			b, _ := simBench(t)
			server := b.start(t, append([]string{"pingpong", "-d", "xr1", "-p", "0"}, flags...)...)
			port := server.listenPort(t)
			client := b.start(t, append([]string{
				"pingpong", "-d", "xr2", "-p", port, "127.0.0.1",
			}, flags...)...)
			for name, i := range map[string]*invocation{"client": client, "server": server} {
				if i.wait(t); i.code != exitOK || !i.quiet() {
					t.Errorf("%s: code %d, stderr %s", name, i.code, i.stderr)
				}
				if !pingpongLines.MatchString(i.stdout) {
					t.Errorf("%s printed:\n%s", name, i.stdout)
				}
			}
		})
	}
}

// TestPingpongTimeout: a message that is lost is sent again after the time that -u says.
func TestPingpongTimeout(t *testing.T) {
	t.Parallel() // it waits most of the time
	const longer = patientTimeout + 1
	for code, flags := range map[int][]string{
		patientTimeout: nil, longer: {"-u", strconv.Itoa(longer)},
	} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Parallel()
			b, network := simBench(t)
			client := [6]byte{2, 0, 0, 0, 0, 2}
			if err := network.SetRules(sim.Rule{
				From: client, Opcodes: []wire.Opcode{wire.RCSendOnly}, Nth: 1,
			}); err != nil {
				t.Fatal(err)
			}
			var lost, again roce.Time
			network.Observe(func(e *sim.Event) {
				switch {
				case e.Kind == sim.Scripted:
					lost = e.At
				case e.Kind == sim.Sent && e.From == client && lost != 0 && again == 0:
					again = e.At
				}
			})
			server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "-s", "64", "-n", "5")
			i := b.run(t, append([]string{
				"pingpong", "-d", "xr2", "-s", "64", "-n", "5", "-p", server.listenPort(t),
				"127.0.0.1",
			}, flags...)...)
			if server.wait(t); i.code != exitOK || server.code != exitOK {
				t.Fatalf("%s%s", i.stderr, server.stderr)
			}
			least := 4096 * time.Nanosecond << code
			if waited := time.Duration(again - lost); waited < least {
				t.Errorf("it was sent again after %s, not %s", waited, least)
			}
		})
	}
}

// With several queue pairs each has its two lines.
func TestPingpongSRQ(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{
		{"-n", "200", "-c"},
		{"-n", "100", "-c", "-e", "-q", "3", "-r", "3", "-s", "3000"},
		{"-n", "100", "-c", "--busy", "-q", "5", "-r", "9"},
	} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			b, _ := simBench(t)
			flags := append([]string{"pingpong", "--type", "srq", "-j"}, flags...)
			server := b.start(t, append(flags, "-d", "xr1", "-p", "0")...)
			client := b.start(t, append(flags, "-d", "xr2", "-p", server.listenPort(t),
				"127.0.0.1")...)
			for name, i := range map[string]*invocation{"client": client, "server": server} {
				if i.wait(t); i.code != exitOK || !i.quiet() {
					t.Errorf("%s: code %d, stderr %s", name, i.code, i.stderr)
				}
			}
			var r pingpongReport
			if err := json.Unmarshal([]byte(client.stdout), &r); err != nil {
				t.Fatal(err)
			}
			if r.Type != "srq" || r.QPs < 2 || r.Local == r.Remote {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestPingpongQPsDiffer(t *testing.T) {
	b, _ := simBench(t)
	server := b.start(t, "pingpong", "--type", "srq", "-q", "2", "-d", "xr1", "-p", "0")
	client := b.start(t, "pingpong", "--type", "srq", "-q", "3", "-d", "xr2", "-p",
		server.listenPort(t), "127.0.0.1")
	if server.wait(t); server.code != exitFailure {
		t.Errorf("server: code %d", server.code)
	}
	contains(t, server.stderr, "-q")
	client.cancel()
	client.wait(t)
}

func TestPingpongUsage(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct{ flags, says string }{
		{"--type xx", "there are rc, uc, ud and srq"},
		{"-q 2", "only --type srq"},
		{"--type srq -q 300", "not in 1..256"},
		{"--type srq -q 8 -r 4", "not enough"},
		{"--type srq -s 100000000", "not in 1.."},
		{"-s 0", "not in 1.."},
		{"-m 1000", "there are 256"},
		{"--odp --type uc", "would be lost with --type uc"},
		{"-o --type ud", "would be lost with --type ud"},
		{"-u 0", "not in 1..31"},
		{"-u 32", "not in 1..31"},
		{"-u 17 --type uc", "nothing is acknowledged with --type uc"},
	} {
		args := append([]string{"pingpong", "-d", "xr1"}, strings.Fields(c.flags)...)
		i := b.run(t, args...)
		if i.code != exitUsage {
			t.Errorf("%s: code %d", c.flags, i.code)
		}
		contains(t, i.stderr, c.says)
	}
}

func TestPingpongJSON(t *testing.T) {
	b, _ := simBench(t)
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "-n", "10", "-s", "100")
	client := b.run(t, "pingpong", "-d", "xr2", "-n", "10", "-s", "100", "--json",
		"-p", server.listenPort(t), "127.0.0.1")
	server.wait(t)
	var r pingpongReport
	if err := json.Unmarshal([]byte(client.stdout), &r); err != nil {
		t.Fatalf("%v in %s, %s", err, client.stdout, client.stderr)
	}
	if r.Bytes != 2000 || r.Iters != 10 || r.MTU != 1024 || r.Backend != "sim" ||
		r.Usec <= 0 || r.Remote.GID != "::ffff:192.0.2.1" {
		t.Errorf("%+v", r)
	}
}

func TestPingpongSizesDiffer(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "-s", "200")
	client := b.start(t, "pingpong", "-d", "xr2", "-s", "100", "-p", server.listenPort(t),
		"127.0.0.1")
	if server.wait(t); server.code != exitFailure {
		t.Errorf("server: code %d", server.code)
	}
	contains(t, server.stderr, "100 bytes, not 200", "-s")
	client.cancel()
	if client.wait(t); client.code != exitFailure && client.code != exitInterrupted {
		t.Errorf("client: code %d, %s", client.code, client.stderr)
	}
}

func TestPingpongCheckFindsWrongData(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	// Without -c the client does not mark its pages.
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "-c")
	client := b.start(t, "pingpong", "-d", "xr2", "-p", server.listenPort(t), "127.0.0.1")
	if server.wait(t); server.code != exitFailure {
		t.Errorf("server: code %d", server.code)
	}
	contains(t, server.stderr, "invalid data in page 0")
	client.cancel()
}

func TestPingpongWithoutServer(t *testing.T) {
	b, _ := simBench(t)
	// A socket that has a port and does not listen: nobody else gets that port meanwhile.
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	if err := unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(at.(*unix.SockaddrInet4).Port)
	i := b.run(t, "pingpong", "-d", "xr1", "-p", port, "127.0.0.1")
	if i.code != exitFailure {
		t.Errorf("code %d", i.code)
	}
	contains(t, i.stderr, "start the server first")
}

// TestServerOpensItsDeviceBeforeItWaits: what is wrong with a device is told at once,
// not when a client comes.
func TestServerOpensItsDeviceBeforeItWaits(t *testing.T) {
	b := bench{machine: goodMachine()}
	b.open = func(string, engine.Options) (*engine.Device, error) { return nil, unix.EPERM }
	for _, args := range [][]string{
		{"pingpong", "-d", "eth0", "-p", "0"},
		{"perf", "send-bw", "-d", "eth0", "-p", "0"},
		{"perf", "send-bw", "-R", "-d", "eth0"},
		{"serve", "-d", "eth0", "--insecure", "--dir", t.TempDir()},
	} {
		i := b.run(t, args...)
		if i.code != exitUnsupported || i.stdout != "" {
			t.Errorf("%q: code %d, stdout %q", args, i.code, i.stdout)
		}
		contains(t, i.stderr, "CAP_NET_ADMIN", "xroce check eth0")
	}
}

func TestPingpongPortTaken(t *testing.T) {
	b, _ := simBench(t)
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0")
	i := b.run(t, "pingpong", "-d", "xr2", "-p", server.listenPort(t))
	if i.code != exitFailure {
		t.Errorf("code %d", i.code)
	}
	contains(t, i.stderr, "choose another with -p")
}

// TestPeerHangsUp: a peer that goes away behind its first word says the same with a FIN and with
// a reset, which is what its kernel sends when it had not read everything.
func TestPeerHangsUp(t *testing.T) {
	for _, args := range [][]string{{"pingpong"}, {"perf", "send-bw"}} {
		for _, reset := range []bool{false, true} {
			b, _ := simBench(t)
			server := b.start(t, append(args, "-d", "xr1", "-p", "0")...)
			conn, err := net.Dial("tcp", "127.0.0.1:"+server.listenPort(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte("6.06")); err != nil {
				t.Fatal(err)
			}
			if reset {
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
					t.Fatal(err)
				}
			}
			conn.Close()
			if server.wait(t); server.code != exitFailure {
				t.Errorf("%q, reset %t: code %d", args, reset, server.code)
			}
			contains(t, server.stderr, "the peer closed the connection")
		}
	}
}

// TestInterruptedServerSucceeds: to be interrupted is how a server ends that waits.
func TestInterruptedServerSucceeds(t *testing.T) {
	b, _ := simBench(t)
	for _, args := range [][]string{
		{"pingpong", "-d", "xr1", "-p", "0"},
		{"serve", "-d", "xr1", "--insecure", "--dir", t.TempDir()},
		{"perf", "send-bw", "-d", "xr1", "-p", "0"},
		{"perf", "write-lat", "-d", "xr1", "-R"},
		{"rping", "-d", "xr1", "-s"},
		{"rping", "-d", "xr1", "-s", "-P"},
		{"ucmatose", "-d", "xr1"},
		{"udaddy", "-d", "xr1"},
		{"rdma-server", "-d", "xr1"},
	} {
		i := b.start(t, args...)
		i.awaitReady(t)
		i.cancel()
		if i.wait(t); i.code != exitOK {
			t.Errorf("%v: code %d, %s", args, i.code, i.stderr)
		}
		contains(t, i.stderr, "xroce: ready", " at ")
	}
}
