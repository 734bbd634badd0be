package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"xroce/bpf"
	"xroce/cmd/xroce/internal/host"
	"xroce/engine"
	"xroce/engine/nic"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// fakeMachine is a host.Machine of plain data.
type fakeMachine struct {
	release    string
	interfaces []host.Interface
	user       host.User
	bpf        bpf.Support
	support    xsk.Support
	probeErr   error
}

func (m *fakeMachine) Kernel() (string, error)               { return m.release, nil }
func (m *fakeMachine) Interfaces() ([]host.Interface, error) { return m.interfaces, nil }
func (m *fakeMachine) User() (host.User, error)              { return m.user, nil }
func (m *fakeMachine) BPF() (bpf.Support, error)             { return m.bpf, nil }

// Card is one with the driver and the queues of the interface, that has no flow rules.
func (m *fakeMachine) Card(iface string) (nic.Card, error) {
	i := host.Find(m.interfaces, iface)
	c := nic.Card{
		Name: iface, Driver: i.Driver, Busy: nic.BusyPoll{DeferHardIRQs: -1},
		RulesErr: unix.EOPNOTSUPP,
	}
	c.Channels.Combined, c.Channels.MaxCombined = i.Queues, i.Queues
	return c, nil
}

func (m *fakeMachine) Probe(ifindex, queue int) (xsk.Support, error) {
	return m.support, m.probeErr
}

// goodMachine can do everything, and has an interface that is up and one that
// is not.
func goodMachine() *fakeMachine {
	addr := netip.MustParseAddr
	yes := func(name string) xsk.Feature { return xsk.Feature{Name: name, OK: true} }
	m := &fakeMachine{
		release: "6.18.0",
		user: host.User{
			Caps: map[string]bool{}, LockedBytes: ^uint64(0), ChargedBytes: xsk.Unlimited, CPUs: 8,
			HugeKiB: 2048,
		},
		bpf: bpf.Support{Load: true},
		support: xsk.Support{
			Copy: yes("copy mode"), ZeroCopy: yes("zero-copy mode"),
			MultiBuffer:         yes("multi-buffer frames"),
			ZeroCopyMultiBuffer: yes("multi-buffer frames in zero-copy mode"),
			BusyPoll:            yes("preferred busy polling"), TxBudget: yes("send budget"),
		},
	}
	for _, c := range host.Capabilities {
		m.user.Caps[c.Name] = true
	}
	up := host.Interface{
		Ethernet: true, Carrier: true, Kind: "device", Driver: "ice", Queues: 1, Qdisc: "mq",
	}
	mac := [6]byte{0x52, 0x54, 0, 0x77, 0x12, 0x34}
	up.Port = engine.Port{
		Name: "eth0", Index: 2, MAC: mac, MTU: 4200, Up: true,
		Addrs: []netip.Addr{addr("2001:db8::1"), addr("192.0.2.1")},
		VLANs: vlansOn(mac),
	}
	down := up
	down.Port = engine.Port{
		Name: "eth1", Index: 3, MAC: [6]byte{0x52, 0x54, 0, 0x77, 0x12, 0x35}, MTU: 256,
	}
	down.Carrier, down.Driver = false, ""
	loopback := host.Interface{Kind: "device", Queues: 1, Qdisc: "noqueue"}
	loopback.Port = engine.Port{Name: "lo", Index: 1, MTU: 65536, Up: true}
	m.interfaces = []host.Interface{loopback, up, down}
	return m
}

// An invocation is a command that ran, or runs.
type invocation struct {
	code           int
	stdout, stderr string
	done           chan struct{}
	cancel         context.CancelFunc
	addr           chan net.Addr // where a server listens
	ready          chan struct{} // closed when a server waits
	out, errs      *lockedBuffer // stdout and stderr as they are now
}

// wait waits for the end of the command.
func (i *invocation) wait(t *testing.T) *invocation {
	t.Helper()
	select {
	case <-i.done:
	case <-time.After(timeout.Scaled(time.Minute)):
		t.Fatal("the command does not end")
	}
	return i
}

// listenPort waits until the command listens and returns its TCP port.
func (i *invocation) listenPort(t *testing.T) string {
	t.Helper()
	select {
	case addr := <-i.addr:
		i.addr <- addr // for the next time
		return fmt.Sprint(addr.(*net.TCPAddr).Port)
	case <-i.done:
		t.Fatalf("ended with code %d before it listened: %s", i.code, i.stderr)
	case <-time.After(timeout.Scaled(time.Minute)):
		t.Fatal("does not listen")
	}
	return ""
}

// awaitReady waits until the command waits for a client.
func (i *invocation) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-i.ready:
	case <-i.done:
		t.Fatalf("ended with code %d before it was ready: %s", i.code, i.stderr)
	case <-time.After(timeout.Scaled(time.Minute)):
		t.Fatal("is not ready")
	}
}

// awaitStdout waits until the command has printed something.
func (i *invocation) awaitStdout(t *testing.T, piece string) {
	t.Helper()
	i.await(t, i.out, piece)
}

// awaitStderr waits until the command has said something.
func (i *invocation) awaitStderr(t *testing.T, piece string) {
	t.Helper()
	i.await(t, i.errs, piece)
}

// await waits until the command has written something to an output of it.
func (i *invocation) await(t *testing.T, to *lockedBuffer, piece string) {
	t.Helper()
	late := time.After(timeout.Scaled(time.Minute))
	for !strings.Contains(to.String(), piece) {
		select {
		case <-i.done:
			if strings.Contains(to.String(), piece) {
				return // it was the last that it did
			}
			t.Fatalf("ended with code %d before it printed %q: %s", i.code, piece, i.stderr)
		case <-late:
			t.Fatalf("does not print %q", piece)
		case <-time.After(time.Millisecond):
		}
	}
}

// A bench makes invocations that see the same machine and network.
type bench struct {
	machine host.Machine
	open    func(string, engine.Options) (*engine.Device, error)
	change  func(*app)
	runtime string         // directory of control sockets, "" for none
	around  func(f func()) // runs the command, for tests in namespaces
}

// start starts a command.
func (b bench) start(t *testing.T, args ...string) *invocation {
	t.Helper()
	ctx, cancel := context.WithCancel(unhurried(t.Context()))
	i := &invocation{
		done: make(chan struct{}), cancel: cancel, addr: make(chan net.Addr, 1),
		ready: make(chan struct{}),
	}
	var stdout, stderr lockedBuffer
	i.out, i.errs = &stdout, &stderr
	a := newApp(&stdout, &stderr)
	a.machine, a.runtime, a.around, a.ackTimeout = b.machine, b.runtime, b.around, patientTimeout
	if b.open != nil {
		a.open = b.open
	}
	a.listening = func(addr net.Addr) { i.addr <- addr }
	a.ready = func() { close(i.ready) }
	if b.change != nil {
		b.change(a)
	}
	around := b.around
	if around == nil {
		around = func(f func()) { f() }
	}
	go around(func() {
		defer close(i.done)
		i.code = a.run(ctx, args)
		i.stdout, i.stderr = stdout.String(), stderr.String()
	})
	t.Cleanup(func() { cancel(); i.wait(t) })
	return i
}

// run runs a command to its end.
func (b bench) run(t *testing.T, args ...string) *invocation {
	t.Helper()
	return b.start(t, args...).wait(t)
}

// quiet reports whether a command said nothing on stderr but that it was ready, and how
// far it is, as it does on a machine that is busy.
func (i *invocation) quiet() bool {
	line, rest, _ := strings.Cut(progressLine.ReplaceAllString(i.stderr, ""), "\n")
	return line == "" && rest == "" || strings.HasPrefix(line, "xroce: ready, ") && rest == ""
}

// progressLine is what something says that has run for seconds.
var progressLine = regexp.MustCompile(`(?m)^.*: .* of .*/s, \d+ %, ETA .*\n`)

// TestQuiet: neither of the lines that tell how far something is makes a command loud, and
// whatever else it says does.
func TestQuiet(t *testing.T) {
	var now time.Time
	a := newApp(io.Discard, io.Discard)
	a.now = func() time.Time { return now }
	for _, steps := range []bool{false, true} {
		var far bytes.Buffer
		a.stderr = &far
		line := a.progress("write-lat", steps)
		now = now.Add(time.Minute)
		line.Update(10, 40)
		for text, want := range map[string]bool{
			"":                              true,
			"xroce: ready, waiting\n":       true,
			"xroce: 10 of 40 are missing\n": false,
		} {
			i := &invocation{stderr: text + far.String()}
			if far.Len() == 0 || i.quiet() != want {
				t.Errorf("%q: quiet is %t", i.stderr, !want)
			}
		}
	}
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type realClock struct{ start time.Time }

func (c realClock) Now() roce.Time { return roce.Time(time.Since(c.start)) }

// simBench has a simulated network whose ports are opened by name: xr1, xr2 and
// so on. From xr51 on they have an MTU of 1500.
func simBench(t *testing.T) (bench, *sim.Network) {
	t.Helper()
	network, err := sim.NewNetwork(1, realClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string, o engine.Options) (*engine.Device, error) {
		var n byte
		if _, err := fmt.Sscanf(name, "xr%d", &n); err != nil {
			return nil, fmt.Errorf("no interface %s", name)
		}
		mtu := 4200
		if n > 50 {
			mtu = 1500
		}
		port, err := network.NewPort(sim.PortConfig{
			Name: name, MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: mtu,
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
			Yield: true,
		})
		if err != nil {
			return nil, err
		}
		return engine.OpenLink(port, port, o)
	}
	return bench{machine: goodMachine(), open: open}, network
}

// contains fails the test unless each of the pieces is in text.
func contains(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}

// golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestWrongCommandLines(t *testing.T) {
	b, _ := simBench(t)
	for _, line := range []string{
		"nonsense", "demo extra", "demo --nonsense", "demo --size 0", "demo --size -4",
		"demo --time 0s", "demo --file-size -1", "demo --xdp-mode x", "demo --xsk-mode x",
		"demo --backend x", "demo --queue -2", "demo --queues 0", "demo --queues some",
		"demo --queue 1 --queues 2", "demo --drivers 0", "demo --queues 2 --drivers 3",
		"demo --queue 0 --drivers 2", "demo --cpu -2", "demo --cpu 100000", "demo --size many",
		"devices x", "devinfo x", "devinfo -i 2", "check a b c", "check eth0 --queue 1",
		"check --serve", "check eth0 h --serve", "check eth0 h -p -1",
		"check --queue -2", "version x", "version --log-format xml",
		"pingpong a b", "pingpong -m 1000", "pingpong -s 0", "pingpong -s -1", "pingpong -n 0",
		"pingpong -r 0", "pingpong -r 1000000", "pingpong -g -2", "pingpong -p 70000 -d xr1",
		"pingpong --mode x", "pingpong -e --mode direct", "pingpong --busy --mode background",
		"pingpong --xsk-mode x",
		"pingpong --backend x", "serve x", "serve --xsk-mode x", "serve -d xr1 --dir . -p -5",
		"serve", "serve --dir . --listen ::", "serve --dir . --listen localhost",
		"serve --dir . --mode-mask 8", "serve --dir . --mode-mask 1777",
		"serve --dir . --max-files -1", "serve --dir . --keep-partial -1s",
		"serve --dir . --insecure --listen localhost", "serve --dir . --insecure -p 0",
		"copy x y: --retry -1s",
		"serve --dir . --max-file 0", "serve --dir . --max-total 1X",
		"serve --dir . --max-file 8589934592G",
		"copy", "copy f", "copy f nohost", "copy f :p", "copy f host:../p", "copy f host:/p",
		"copy f [::1]p", "copy f []:p", "copy f h: --queue -3",
	} {
		i := b.run(t, strings.Fields(line)...)
		if i.code != exitUsage || i.stdout != "" {
			t.Errorf("%s: code %d, stdout %q, stderr %q", line, i.code, i.stdout, i.stderr)
		}
		// The command is that of the line, but for one that there is not.
		command := "xroce " + strings.Fields(line)[0]
		usage := command + " "
		if line == "nonsense" {
			command, usage = "xroce", "xroce COMMAND\n"
		}
		contains(t, i.stderr, "xroce: ", "\nUsage: "+usage, "Try '"+command+" --help'")
	}
}

// TestErrorsAreJSON: who reads JSON gets errors as that, too, on stderr and one a line.
func TestErrorsAreJSON(t *testing.T) {
	b, _ := simBench(t)
	for line, want := range map[string]failure{
		"nonsense --json":                              {"unknown command", exitUsage},
		"demo --nonsense -j":                           {"unknown flag: --nonsense", exitUsage},
		"pingpong --json -m 1000":                      {"-m 1000", exitUsage},
		"check eth9 --json":                            {"no interface eth9", exitFailure},
		"devinfo -j -d eth9":                           {"no device eth9", exitFailure},
		"rping -j -d none -c -a 192.0.2.9":             {"no interface none", exitFailure},
		"perf send-bw --json -d none":                  {"no interface none", exitFailure},
		"serve --json -d xr1 --insecure --dir /none/x": {"/none/x", exitFailure},
	} {
		i := b.run(t, strings.Fields(line)...)
		var got failure
		if err := json.Unmarshal([]byte(i.stderr), &got); err != nil {
			t.Errorf("%s: %v in %q", line, err, i.stderr)
		}
		if i.code != want.Code || got.Code != want.Code || i.stdout != "" ||
			!strings.Contains(got.Error, want.Error) || strings.Count(i.stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %+v, want %+v; stdout %q", line, i.code, got, want, i.stdout)
		}
	}
	server := b.start(t, "pingpong", "-j", "-d", "xr1", "-p", "0")
	client := b.start(t, "pingpong", "-j", "-d", "xr2", "-n", "1000000000", "-e", "-p",
		server.listenPort(t), "127.0.0.1")
	server.awaitReady(t)
	client.cancel()
	client.wait(t)
	var got failure
	err := json.Unmarshal([]byte(client.stderr), &got)
	if err != nil || got != (failure{"interrupted", exitInterrupted}) {
		t.Errorf("interrupted: %v, %+v in %q", err, got, client.stderr)
	}
	server.cancel()
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []string{
		"demo", "check", "devices", "devinfo", "pingpong", "serve", "copy", "version", "rping",
		"ucmatose", "udaddy", "rdma-server", "rdma-client", "msg", "msg explain", "msg stream",
		"encap list", "pktgen", "sink", "fuzz",
	} {
		i := b.run(t, append(strings.Fields(c), "--help")...)
		if i.code != exitOK || i.stderr != "" {
			t.Errorf("%s --help: code %d, stderr %q", c, i.code, i.stderr)
		}
		contains(t, i.stdout, "Examples:", "xroce "+c, "--json")
	}
}

func TestVersion(t *testing.T) {
	b, _ := simBench(t)
	i := b.run(t, "version", "--json")
	var r versionReport
	if err := json.Unmarshal([]byte(i.stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, i.stdout)
	}
	if r.Version != version || r.Kernel != "6.18.0" || !strings.HasPrefix(r.Go, "go1") {
		t.Errorf("%+v", r)
	}
	contains(t, b.run(t, "version").stdout, "xroce "+version, "kernel 6.18.0")
}

func TestExitCodes(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		ran  bool
		want int
	}{
		{"success", t.Context(), nil, true, 0},
		{"failure", t.Context(), errors.New("x"), true, 1},
		{"before it ran", t.Context(), errors.New("x"), false, 2},
		{"usage while it ran", t.Context(), fmt.Errorf("a: %w", usagef("x")), true, 2},
		{"no privilege", t.Context(), fmt.Errorf("a: %w", unix.EPERM), true, 3},
		{"no AF_XDP", t.Context(), fmt.Errorf("a: %w", unix.EAFNOSUPPORT), true, 3},
		{"unsupported", t.Context(), errors.ErrUnsupported, true, 3},
		{"interrupted", ended, context.Canceled, true, 130},
		{"own code", t.Context(), exitError{3, nil}, true, 3},
	} {
		if got := exitCode(c.ctx, c.err, c.ran); got != c.want {
			t.Errorf("%s: %d, not %d", c.name, got, c.want)
		}
	}
}

func TestAdviceSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want []string
	}{
		{unix.EPERM, []string{
			"CAP_NET_RAW", "chgrp GROUP ", "chmod 0750 ", "setcap", "xroce check xr1",
		}},
		{unix.EBUSY, []string{"a queue of xr1 is taken", "--queue", "ss --xdp"}},
		{unix.ENOBUFS, []string{"ulimit -l"}},
		{unix.ENOMEM, []string{"memory.max", "xroce check"}},
	} {
		err := advise(fmt.Errorf("open: %w", c.err), "xr1")
		if !errors.Is(err, c.err) {
			t.Errorf("%v hides its cause", err)
		}
		contains(t, err.Error(), c.want...)
	}
	foreign := fmt.Errorf("%w: %w", bpf.ErrForeignProgram, unix.EBUSY)
	if err := advise(foreign, "xr1"); err != foreign {
		t.Errorf("a foreign program is explained as a taken queue: %v", err)
	}
}
