package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// namespaces counts those that tests made here, some at once. Their names are those of
// package vethpair, which sweeps up what a process that was killed has left, with numbers that it
// does not come to.
var namespaces atomic.Uint32

const firstNamespace = 1 << 30

// bridged makes two namespaces, each with an interface xr0 of MTU 9000, and a bridge between
// them in a third, with ports of another MTU. It returns the names of the first two.
func bridged(t *testing.T, mtu int) [2]string {
	t.Helper()
	names, _ := hostsOnBridge(t, 2, mtu)
	return [2]string(names)
}

// hostsOnBridge is bridged with more of them, from 10.99.0.1 on, and returns the name of that of
// the bridge, too, where the ports are p0 and so on.
func hostsOnBridge(t *testing.T, hosts, mtu int) (names []string, bridge string) {
	t.Helper()
	xsktest.NeedRoot(t)
	ip := func(line string, args ...any) {
		t.Helper()
		words := strings.Fields(fmt.Sprintf(line, args...))
		if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v: %s", words, err, out)
		}
	}
	add := func() string {
		number := firstNamespace + namespaces.Add(1)
		name := fmt.Sprintf("xroce-%d-%d-%v", os.Getpid(), number, vethpair.A)
		ip("netns add %s", name)
		t.Cleanup(func() { ip("netns del %s", name) })
		return name
	}
	for range hosts {
		names = append(names, add())
	}
	bridge = add()
	ip("-n %s link add br0 type bridge", bridge)
	ip("-n %s link set br0 up", bridge)
	for i, ns := range names {
		ip("link add xr0 netns %s mtu 9000 numrxqueues 1 numtxqueues 1 type veth peer name p%d "+
			"netns %s mtu %d numrxqueues 1 numtxqueues 1", ns, i, bridge, mtu)
		ip("-n %s link set p%d master br0 up", bridge, i)
		ip("-n %s addr add 10.99.0.%d/24 dev xr0", ns, i+1)
		ip("-n %s link set xr0 up", ns)
		ip("netns exec %s tc qdisc add dev xr0 root pfifo limit 1000", ns)
	}
	return names, bridge
}

// within returns a command that runs a child in a namespace of this name.
func within(t *testing.T, ns string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := child(t, 0, args...)
	cmd.Path, cmd.Args = "/usr/sbin/ip", append([]string{"ip", "netns", "exec", ns}, cmd.Args...)
	return cmd
}

// startChecks starts a server of checks and waits until it is ready.
func startChecks(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	var line [256]byte
	timer := time.AfterFunc(timeout.Scaled(time.Minute), func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if n, err := stderr.Read(line[:]); !strings.Contains(string(line[:n]), "ready, answering") {
		t.Fatalf("%q, %v", line[:n], err)
	}
}

// TestRootCheckPath: a bridge of MTU 1500 between ends of MTU 9000 is found, and without a
// server it is told what was not checked.
func TestRootCheckPath(t *testing.T) {
	t.Parallel() // it waits most of the time
	ns := bridged(t, 1500)
	check := func(want int, args ...string) string {
		t.Helper()
		cmd := within(t, ns[0], append([]string{"check", "xr0"}, args...)...)
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%q: code %d, %v:\n%s", args, code, err, out)
		}
		return string(out)
	}
	contains(t, check(exitFailure, "10.99.0.2"), "yes   neighbour", "10.99.0.2 is reached by",
		"no    TCP port 18516", "nobody answers checks", "xroce check IFACE --serve",
		"-     UDP port 4791", "not checked", " 1 to mend\n")
	startChecks(t, within(t, ns[1], "check", "xr0", "--serve"))
	contains(t, check(exitFailure, "10.99.0.2"), "yes   RoCE v2, IPv4", "to 10.99.0.2: both ways",
		"yes   RoCE v1", "warn  largest packet there", "1500 bytes, though the MTU is 9000 "+
			"here and",
		"yes   largest packet back", "1500 bytes, as large as what came there", "1024, as with "+
			"-m 1024",
		"yes   TCP port 18515", "open: pingpong, perf", " 1 to mend\n")
	contains(t, check(exitFailure, "10.99.0.2", "--json"), `"path_mtu": 1024`,
		`"largest_there": 1500`, `"to_mend": 1`, `"host": "10.99.0.2"`)
}

// TestRootCheckGood: nothing is to mend between two ends of a wire.
func TestRootCheckGood(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200, Queues: 4})
	startChecks(t, within(t, p.B.Namespace, "check", "xr0", "--serve"))
	out, err := within(t, p.A.Namespace, "check", "xr0", p.B.IPv6.Addr().String()).Output()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	contains(t, string(out), "yes   RoCE v2, IPv6", "4148 bytes", "4096, as with -m 4096",
		"\ncheck: ", " ok, 0 to mend\n", "yes   queues", "4, all of which are ours")
	i := in(vethpair.A).run(t, "check", "xr0", "--queue", "1")
	contains(t, i.stdout, "warn  queues", "4, of which queue 1 is ours",
		"on queues 0-3: 3 of 4 are not ours", "AF_XDP on queue 1")
}

// TestRootOwnerNamed: a device that another process has is refused, with the number and the
// command line of that process, in the namespace alone and by who may see it.
func TestRootOwnerNamed(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, _ := pair(t, vethpair.Options{MTU: 4200, Queues: 2})
	owner := within(t, p.A.Namespace, "check", "xr0", "--serve")
	startChecks(t, owner)
	want := fmt.Sprintf("of pid %d (%s check xr0 --serve)", owner.Process.Pid, owner.Args[4])
	for _, line := range []string{
		"check xr0 --serve -p 18517", "rping -s -d xr0", "check xr0 --serve --queue 1 -p 18517",
	} {
		cmd := within(t, p.A.Namespace, strings.Fields(line)...)
		var out strings.Builder
		cmd.Stderr = &out
		err := cmd.Run()
		first, _, _ := strings.Cut(out.String(), "\n")
		if err == nil || !strings.Contains(first, want) ||
			!strings.Contains(out.String(), "bpftool link detach id ") {
			t.Errorf("%s: %v, %q is not in: %s", line, err, want, out.String())
		}
	}
	// What looks changes nothing: it says the same.
	out, err := within(t, p.A.Namespace, "check", "xr0").Output()
	if err == nil {
		t.Errorf("check: %s", out)
	}
	contains(t, string(out), "no    XDP program", "is attached already")
}

// TestRootLargeLost: of a path on which large packets alone are lost, that is said by the end
// that sends or asks for them, and of one on which nothing is, it is not.
func TestRootLargeLost(t *testing.T) {
	t.Parallel() // it waits most of the time
	ns := bridged(t, 1500)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 8192), 0o644); err != nil {
		t.Fatal(err)
	}
	const all, host = " -n 10 -p 18518", "10.99.0.2"
	for _, c := range []struct {
		server, client string
		ok, ends       bool // the client succeeds, the server ends by itself
	}{
		{"pingpong -m 4096 -s 4096", "pingpong -m 4096 -s 4096 " + host, false, false},
		{"pingpong -m 1024 -s 4096", "pingpong -m 1024 -s 4096 " + host, true, true},
		{"perf write-bw -m 4096 -s 4096", "perf write-bw -m 4096 -s 4096 " + host, false, false},
		{"rping -s -S 4096", "rping -c -C 1 -S 4096 -a " + host, false, true},
		{"ucmatose -C 1 -S 4096", "ucmatose -C 1 -S 4096 -s " + host, false, false},
		{"msg stream --size 8192", "msg stream --size 8192 " + host, false, true},
		{
			"serve --insecure --allow-read --dir " + dir,
			"copy --retry 1s " + host + ":f " + t.TempDir(), false, false,
		},
	} {
		if strings.HasPrefix(c.server, "p") {
			c.server, c.client = c.server+all, c.client+all
		}
		talk := func() (string, error) {
			return talkThrough(t, ns, c.server+" -d xr0", c.client+" -d xr0", c.ends)
		}
		var said string
		var err error
		// The small packet is to be answered within one ACK timeout, 67 ms with some commands. A
		// peer that is not scheduled in that time cannot be told from one that is gone.
		patiently(func() bool {
			said, err = talk()
			return c.ok && err == nil || !c.ok && strings.Contains(said, "answers small packets")
		})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v, %s", c.client, err, said)
		}
		if !c.ok {
			contains(t, said, "the peer does not answer any more; but it answers small "+
				"packets, so large ones alone were lost",
				"'xroce check IFACE HOST' finds what passes")
		}
	}
}

// talkThrough runs a server in the second namespace and its client in the first, and returns
// what both said on stderr and how the client ended. A server that does not end by itself is
// interrupted then.
func talkThrough(
	t *testing.T, ns [2]string, serve, ask string, ends bool,
) (said string, err error) {
	t.Helper()
	server := within(t, ns[1], strings.Fields(serve+" -v")...)
	stderr, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(timeout.Scaled(time.Minute), func() {
		_ = server.Process.Kill()
		t.Errorf("%s does not end", serve)
	}).Stop()
	var first [256]byte
	n, err := stderr.Read(first[:])
	if err != nil {
		t.Fatalf("the server: %q, %v", first[:n], err)
	}
	said, err = runOnceHeard(t, ns[0], ask)
	if !ends {
		_ = server.Process.Signal(os.Interrupt)
	}
	rest, _ := io.ReadAll(stderr)
	_ = server.Wait() // it may wait for what never comes
	return said + string(first[:n]) + string(rest), err
}

// runOnceHeard runs a client whose server may not listen yet, and returns what it said on stderr.
func runOnceHeard(t *testing.T, ns, line string) (said string, err error) {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); time.Now().Before(end); {
		client := within(t, ns, strings.Fields(line)...)
		var stderr strings.Builder
		client.Stderr = &stderr
		err = client.Run()
		if said = stderr.String(); err == nil || !strings.Contains(said, "refused") {
			break
		}
	}
	return said, err
}
