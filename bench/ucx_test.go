package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/bench/worker"
	"xroce/xsk/xsktest/timeout"
)

// ucxSays is what ucx_perftest 1.13 prints with -f -v.
const ucxSays = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr," +
	"overall_mr\n10000,0.923,2.316,2.316,26.36,26.36,431802,431802\n"

func TestParseUCX(t *testing.T) {
	got, err := parseUCX(ucxSays)
	want := ucxLine{iterations: 10000, median: 0.923, perSecond: 431802}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{
		"", "1,2,3\n", "a,b,c,d,e,f,g,h\n", "0,1,1,1,1,1,1,1\n", "9,1,1,1,1,1,1,0\n",
		"9,1,1,1,1,1,1,-3\n", "9,1,1,1,1,1,1,NaN\n", "9,1,1,1,1,1,1,inf\n",
	} {
		if got, err := parseUCX(text); err == nil {
			t.Errorf("parseUCX(%q) = %+v, want an error", text, got)
		}
	}
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 00000000:3419 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 0100007F:0016 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 2
`
	for port, want := range map[int]bool{13337: true, 22: false, 1: false} {
		if got := listens(table, port); got != want {
			t.Errorf("port %d: %v, want %v", port, got, want)
		}
	}
	if listens("", ucxPort) {
		t.Error("somebody listens in an empty table")
	}
}

// TestGaveUp: that a program took too long is no failure of a run, anything else is.
func TestGaveUp(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-late.Done()
	other, end := context.WithCancel(t.Context())
	end()
	failed := errors.New("killed")
	if err := gaveUp(late, failed); !errors.Is(err, errGaveUp) || !errors.Is(err, failed) {
		t.Errorf("too late: %v", err)
	}
	for _, ctx := range []context.Context{t.Context(), other} {
		if err := gaveUp(ctx, failed); errors.Is(err, errGaveUp) {
			t.Errorf("in time: %v", err)
		}
	}
}

// freePort is a port that nobody has just now, of UDP and of TCP.
func freePort(t *testing.T) int {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := net.Listen("tcp4", c.LocalAddr().String())
	if errors.Is(err, unix.EADDRINUSE) {
		return freePort(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestUDPGRO sends datagrams that the kernel cuts and joins, over loopback, to the receiver in C:
// it counts each of them. So few bytes lose nothing there.
func TestUDPGRO(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("SKIPPED, the C peers were not compiled: %v", err)
	}
	p := compiled(t)
	if p.udppeerMissing != "" {
		t.Fatal(p.udppeerMissing)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	const from = "127.0.0.2"
	o := worker.Options{
		Mode: "rx-gro", Local: "127.0.0.1", Remote: from, Port: freePort(t), Size: 64, Batch: 64,
		Window: time.Millisecond,
	}
	rx, err := worker.Start(ctx, append([]string{p.udppeer}, o.Args()...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer rx.Close()
	if _, err := rx.Ready(); err != nil {
		t.Fatal(err)
	}
	joined(t, from, o.Port)
	if err := rx.Go(""); err != nil {
		t.Fatal(err)
	}
	r, err := rx.Report(o.Window)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(10 + 3 + 1); r.Total != want || r.Counters["rx_buffers"] != 3 {
		t.Errorf("%d datagrams in %d buffers, want %d in 3", r.Total, r.Counters["rx_buffers"],
			want)
	}
}

// joined sends 10 datagrams in one buffer, 3 in another, the last of which is short, and one alone.
func joined(t *testing.T, from string, port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, err := range []error{
		unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(from).To4())}),
		unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}),
		unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 64),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{10 * 64, 2*64 + 1, 64} {
		if _, err := unix.Write(fd, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUCXSaysSo holds the parser to the program that is here.
func TestUCXSaysSo(t *testing.T) {
	if why := ucxMissing(); why != "" {
		t.Skipf("SKIPPED: %s", why)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	args := []string{
		"-t", "tag_bw", "-s", "64", "-n", "100", "-w", "10", "-f", "-v",
		"-p", strconv.Itoa(freePort(t)),
	}
	env := append(os.Environ(), "UCX_TLS=tcp", "UCX_NET_DEVICES=lo")
	server := exec.CommandContext(ctx, ucxProgram, args...)
	server.Env = env
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = server.Wait()
	}()
	var text string
	for {
		client := exec.CommandContext(ctx, ucxProgram, append([]string{"127.0.0.1"}, args...)...)
		client.Env = env
		out, err := client.CombinedOutput()
		text = string(out)
		if err == nil {
			break
		}
		if ctx.Err() != nil || !strings.Contains(text, "refused") {
			t.Fatalf("%v: %s", err, text)
		}
	}
	if line, err := parseUCX(text); err != nil || line.iterations != 100 {
		t.Errorf("%+v, %v", line, err)
	}
}

// TestMessageRun measures messages, streams and what is beside them, as shortly as can be.
func TestMessageRun(t *testing.T) {
	needMachine(t)
	const some = "msg-64,msg-rtt,msg-stream,msg-size-4096,msg-first-4096"
	for _, c := range quickly(t, some, 1).Cases {
		for _, r := range c.Rows {
			if len(r.Workers) == 0 {
				continue // it gave up
			}
			rtt := strings.Contains(c.Name, "rtt") || strings.Contains(c.Name, "first")
			if r.Variant != ucx.String() && rtt != (r.Workers[0].RTT != nil) {
				t.Errorf("%s, %s: round trips %+v", c.Name, r.Variant, r.Workers[0].RTT)
			}
			if first := strings.Contains(c.Name, "first"); first != (r.Workers[0].Nth != nil) {
				t.Errorf("%s, %s: first messages %+v", c.Name, r.Variant, r.Workers[0].Nth)
			}
		}
	}
}
