package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/engine/capture"
	"xroce/xsk/vethpair"
)

// pingpongBench has a server that runs and waits for a client, and the arguments of that.
func pingpongBench(t *testing.T, flags ...string) (b bench, server *invocation, client []string) {
	t.Helper()
	b, _ = simBench(t)
	b.runtime = filepath.Join(t.TempDir(), "xroce")
	args := append([]string{"pingpong", "-n", "3", "-p", "0", "-d", "xr1"}, flags...)
	server = b.start(t, args...)
	server.awaitReady(t)
	return b, server, []string{
		"pingpong", "-n", "3", "-d", "xr2", "-p", server.listenPort(t), "127.0.0.1",
	}
}

// TestTcpdump attaches to a program, prints what is wanted and ends with the count.
func TestTcpdump(t *testing.T) {
	b, server, client := pingpongBench(t)
	dump := b.start(t, "tcpdump", "-i", "xr1", "-c", "3", "opcode", "==", "SEND_FIRST", "and",
		"inbound")
	dump.awaitReady(t)
	asJSON := b.start(t, "tcpdump", "-j", "-i", fmt.Sprint(os.Getpid(), ":xr1"), "-c", "1",
		"outbound")
	asJSON.awaitReady(t)
	if i := b.run(t, client...); i.code != exitOK {
		t.Fatal(i.stderr)
	}
	if server.wait(t).code != exitOK {
		t.Error(server.stderr)
	}
	if dump.wait(t); dump.code != exitOK || strings.Count(dump.stdout, "\n") != 3 ||
		strings.Count(dump.stdout, "In 192.0.2.2 > 192.0.2.1 RoCEv2 ") != 3 ||
		strings.Count(dump.stdout, " icrc ok # qp 0x") != 3 ||
		!strings.Contains(dump.stderr, "3 packets captured\n") {
		t.Errorf("code %d: %s%s", dump.code, dump.stdout, dump.stderr)
	}
	var line struct{ Interface, Direction, Comment string }
	if err := json.Unmarshal([]byte(asJSON.wait(t).stdout), &line); err != nil ||
		line.Interface != "xr1" || line.Direction != "Out" ||
		!strings.HasSuffix(line.Comment, " sent") {
		t.Errorf("%v: %s", err, asJSON.stdout)
	}
}

// TestTcpdumpWrites: without -i it is the one device that there is; the file has every packet
// until the program ends, cut as asked for.
func TestTcpdumpWrites(t *testing.T) {
	b, server, client := pingpongBench(t)
	name := filepath.Join(t.TempDir(), "all.pcapng")
	dump := b.start(t, "tcpdump", "-w", name, "-s", "60")
	dump.awaitReady(t)
	if i := b.run(t, client...); i.code != exitOK {
		t.Fatal(i.stderr)
	}
	server.wait(t)
	if dump.wait(t).code != exitOK || dump.stdout != "" {
		t.Fatalf("code %d: %s%s", dump.code, dump.stdout, dump.stderr)
	}
	packets, stats := readCapture(t, name)
	if len(packets) < 9 || stats.Received != uint64(len(packets)) || stats.Dropped != 0 {
		t.Errorf("%d packets, %+v", len(packets), stats)
	}
	for _, p := range packets {
		if len(p.Head) != 60 || p.Len <= 60 || p.Comment == "" {
			t.Fatalf("%d bytes of %d, %q", len(p.Head), p.Len, p.Comment)
		}
	}
}

// TestTcpdumpInterrupted: that is how it ends, also while nothing comes.
func TestTcpdumpInterrupted(t *testing.T) {
	b, server, _ := pingpongBench(t)
	dump := b.start(t, "tcpdump", "-w", filepath.Join(t.TempDir(), "f"))
	dump.awaitReady(t)
	dump.cancel()
	if dump.wait(t).code != exitOK || !strings.Contains(dump.stderr, "0 packets captured") {
		t.Errorf("code %d: %s", dump.code, dump.stderr)
	}
	select {
	case <-server.done:
		t.Error("the program has ended, too")
	default:
	}
}

// TestTcpdumpInterruptedOnAFullDisk: that nothing could be written is no less a failure when the
// command was to end.
func TestTcpdumpInterruptedOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	b, _, _ := pingpongBench(t)
	dump := b.start(t, "tcpdump", "-w", "/dev/full")
	dump.awaitReady(t)
	dump.cancel()
	dump.wait(t).exited(t, exitFailure)
	contains(t, dump.stderr, "xroce: write /dev/full: no space left on device\n")
}

// TestTcpdumpFails: what is wrong is said, and nothing else is done instead.
func TestTcpdumpFails(t *testing.T) {
	b, server, client := pingpongBench(t)
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"-i xr1 qpn == x":      {exitUsage, "\n  qpn == x\n         ^"},
		"-i 1":                 {exitFailure, "no xroce process 1 has a control socket"},
		"-i -5":                {exitUsage, "no process has this number"},
		"-i xr1 -c 0":          {exitUsage, "no packet is wanted"},
		"-i xr1 -W 3":          {exitUsage, "-W is for -C or -G"},
		"-i xr1 -C 3":          {exitUsage, "need -w with a file"},
		"-i xr1 -s -1":         {exitUsage, "-s -1 is not in"},
		"-i xr1 -w f%Q -G 1":   {exitUsage, "%Q is no time"},
		"-i xr1 -w /none/f":    {exitFailure, "no such file"},
		"-i no-such-interface": {exitFailure, `no xroce process has an interface "no-such-int`},
	} {
		i := b.run(t, append([]string{"tcpdump"}, strings.Fields(args)...)...)
		if i.code != want.code || !strings.Contains(i.stderr, want.says) {
			t.Errorf("%s: code %d, %s", args, i.code, i.stderr)
		}
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		full := b.start(t, "tcpdump", "-i", "xr1", "-w", "/dev/full")
		full.awaitReady(t)
		b.run(t, client...)
		if full.wait(t).code != exitFailure || !strings.Contains(full.stderr, "no space left") {
			t.Errorf("code %d: %s", full.code, full.stderr)
		}
	}
	server.wait(t)
	none := bench{machine: goodMachine(), runtime: t.TempDir() + "/none"}
	if i := none.run(t, "tcpdump"); i.code != exitUsage ||
		!strings.Contains(i.stderr, "no xroce program runs") {
		t.Errorf("code %d: %s", i.code, i.stderr)
	}
}

// TestTcpdumpLists what there is to watch.
func TestTcpdumpLists(t *testing.T) {
	b, _, _ := pingpongBench(t)
	i := b.run(t, "tcpdump", "-D")
	if want := fmt.Sprintf("1. %d:xr1 (", os.Getpid()); !strings.HasPrefix(i.stdout, want) {
		t.Errorf("%s%s", i.stdout, i.stderr)
	}
}

// TestTcpdumpOfTheKernel copies what an interface sees that no program of ours has.
func TestTcpdumpOfTheKernel(t *testing.T) {
	p, in := pair(t, vethpair.Options{MTU: 1500})
	b := in(vethpair.A)
	b.runtime = filepath.Join(t.TempDir(), "none")
	dump := b.start(t, "tcpdump", "-i", "xr0", "-c", "1", "udp", "port", "9")
	dump.awaitReady(t)
	to := net.UDPAddr{IP: p.A.IPv4.Addr().AsSlice(), Port: 9}
	err := p.Do(vethpair.B, func() error {
		conn, err := net.DialUDP("udp", nil, &to)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("a datagram that nobody takes"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if dump.wait(t).code != exitOK || !strings.Contains(dump.stdout, " In ") ||
		strings.Count(dump.stdout, "\n") != 1 {
		t.Errorf("code %d: %s%s", dump.code, dump.stdout, dump.stderr)
	}
}

// TestTcpdumpOutlivesAnOutage: an interface that goes down is waited for, and one that is removed
// ends the capture, also while it is down.
func TestTcpdumpOutlivesAnOutage(t *testing.T) {
	p, in := pair(t, vethpair.Options{MTU: 1500})
	b := in(vethpair.A)
	b.runtime = filepath.Join(t.TempDir(), "none")
	dump := b.start(t, "tcpdump", "-i", "xr0", "-c", "1", "udp", "port", "9")
	other := b.start(t, "tcpdump", "-i", "xr0", "udp", "port", "9")
	link := func(f func(netlink.Link) error) {
		t.Helper()
		err := p.Do(vethpair.A, func() error {
			link, err := netlink.LinkByName(vethpair.IfName)
			if err != nil {
				return err
			}
			return f(link)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []*invocation{dump, other} {
		i.awaitReady(t)
	}
	link(netlink.LinkSetDown)
	link(netlink.LinkSetUp)
	// The kernel may have the address anew, and no carrier yet: what is sent may be lost.
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	to := net.UDPAddr{IP: p.A.IPv4.Addr().AsSlice(), Port: 9}
	for captured := false; !captured; {
		err := p.Do(vethpair.B, func() error {
			conn, err := net.DialUDP("udp", nil, &to)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte("a datagram that nobody takes"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-dump.done:
			captured = true
		case <-again.C:
		}
	}
	if dump.wait(t).code != exitOK || strings.Count(dump.stdout, "\n") != 1 {
		t.Errorf("code %d: %s%s", dump.code, dump.stdout, dump.stderr)
	}
	link(netlink.LinkSetDown)
	link(netlink.LinkDel)
	if other.wait(t).code != exitFailure {
		t.Errorf("code %d", other.code)
	}
	contains(t, other.stderr, "xr0: the interface was removed")
}

// TestTcpdumpOfALiar: what a program says of itself does not command the terminal, and when it does
// not end the capture, it is told that what it counted is not known.
func TestTcpdumpOfALiar(t *testing.T) {
	b := bench{machine: goodMachine(), runtime: filepath.Join(t.TempDir(), "xroce")}
	if err := os.Mkdir(b.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint(os.Getpid(), "-", strings.Repeat("A", 26), ".sock")
	l, err := net.Listen("unix", filepath.Join(b.runtime, name))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			answer := []byte(`{"version":1,"devices":[{"ifname":"\u001b[31m\n"}]}` + "\n")
			_, _ = conn.Write(capture.AppendHeader(answer, "\x1b[2Jown\ned", 0))
			defer conn.Close()
		}
	}()
	dump := b.start(t, "tcpdump", "-i", fmt.Sprint(os.Getpid()))
	dump.awaitReady(t)
	dump.cancel()
	if dump.wait(t); dump.code != exitOK || strings.Contains(dump.stderr, "\x1b") ||
		!strings.Contains(dump.stderr, `watching \x1b[2Jown\ned, of`) ||
		!strings.Contains(dump.stderr, "did not say what it counted") {
		t.Errorf("code %d: %s", dump.code, dump.stderr)
	}
	for _, list := range []string{"tcpdump -D", "stat -a"} {
		i := b.run(t, strings.Fields(list)...)
		if i.code != exitOK || strings.Contains(i.stdout, "\x1b") {
			t.Errorf("%s: code %d, %q%s", list, i.code, i.stdout, i.stderr)
		}
	}
}
