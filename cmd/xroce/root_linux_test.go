package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/demo"
	"xroce/engine"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

func TestRootPingpong(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200})
	for _, c := range []struct{ server, flags string }{
		{p.A.IPv4.Addr().String(), "-c -s 4096 -n 200"},
		{p.A.IPv4.Addr().String(), "-c -s 100000 -m 4096 -n 50 -e"},
		{p.A.IPv6.Addr().String(), "-c -s 3000 -n 50 -e --xdp-mode generic --xsk-mode copy"},
		{p.A.IPv4.Addr().String(), "-c -s 3000 -n 50 -e --backend asavie"},
	} {
		flags := strings.Fields("pingpong -d xr0 " + c.flags)
		server := in(vethpair.A).start(t, append(flags, "-p", "0")...)
		client := in(vethpair.B).start(t, append(flags, "-p", server.listenPort(t), c.server)...)
		for name, i := range map[string]*invocation{"client": client, "server": server} {
			if i.wait(t); i.code != exitOK {
				t.Errorf("%s: %s: code %d, %s", c.flags, name, i.code, i.stderr)
			}
			contains(t, i.stdout, "usec/iter\n", "remote address: LID 0x0000, QPN 0x")
		}
	}
}

// awaitListener waits until a server listens in namespace A.
func awaitListener(t *testing.T, p *vethpair.Pair, port string) {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); time.Now().Before(end); {
		var out []byte
		err := p.Do(vethpair.A, func() (err error) {
			out, err = exec.Command("ss", "-Hltn", "sport", "=", ":"+port).Output()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > 0 {
			return
		}
	}
	t.Fatal("the server does not listen")
}

func TestRootDiskFull(t *testing.T) {
	p, in := pair(t, vethpair.Options{MTU: 4200})
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	server := in(vethpair.A).start(t, "serve", "--once", "--insecure", "-d", "xr0", "--dir", dir)
	server.listenPort(t)
	name, _ := randomFile(t, 10<<20, 0o600)
	i := in(vethpair.B).run(t, "copy", name, p.A.IPv4.Addr().String()+":f")
	if server.wait(t); i.code != exitFailure || server.code != exitFailure {
		t.Errorf("client %d, server %d", i.code, server.code)
	}
	// How much room there is, is for the server's own log.
	contains(t, i.stderr, "create f: no space left on device for 10485760 bytes")
	contains(t, server.stderr, "create f: no space left on device: 10485760 bytes, and ")
	onlyFiles(t, dir)
}

func TestRootOpenErrors(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200})
	i := in(vethpair.A).run(t, "serve", "-d", "xr7", "--insecure", "--dir", t.TempDir())
	if i.code != exitFailure {
		t.Errorf("missing interface: code %d", i.code)
	}
	contains(t, i.stderr, "xr7", "no such interface", "ip link")

	holder := in(vethpair.A).start(t, "serve", "-d", "xr0", "--insecure", "--dir", t.TempDir())
	holder.listenPort(t)
	i = in(vethpair.A).run(t, "serve", "-d", "xr0", "--insecure", "--dir", t.TempDir())
	if i.code != exitFailure {
		t.Errorf("taken: code %d", i.code)
	}
	first, _, _ := strings.Cut(i.stderr, "\n")
	// TestRootOwnerNamed has the holder in another process.
	contains(t, first, "queue 0 of xr0 is that of another device of this process")
	i = in(vethpair.A).run(t, "check", "xr0")
	if i.code != exitUnsupported {
		t.Errorf("check of a taken interface: code %d\n%s", i.code, i.stdout)
	}
	contains(t, i.stdout, "is attached already", "-> ", "ss --xdp")
	contains(t, in(vethpair.A).run(t, "devinfo", "-d", "xr0").stdout, "xdp_program:", "native mode")
	holder.cancel()
	holder.wait(t)

	i = in(vethpair.A).run(t, "check", "xr0", "--json")
	if i.code != exitOK {
		t.Errorf("check: code %d\n%s", i.code, i.stdout)
	}
	contains(t, i.stdout, `"works": true`, "path MTU 4096")

	// A queue beyond the last.
	i = in(vethpair.A).run(t, "serve", "-d", "xr0", "--queue", "5", "--insecure", "--dir",
		t.TempDir())
	if i.code == exitOK || i.code == exitInterrupted {
		t.Errorf("queue 5: code %d", i.code)
	}
	contains(t, i.stderr, "queue")

	var out bytes.Buffer
	cmd := child(t, 65534, "serve", "-d", "xr0", "--insecure", "--dir", "/tmp")
	cmd.Stderr = &out
	err := p.Do(vethpair.A, cmd.Run)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUnsupported {
		t.Errorf("without capabilities: %v", err)
	}
	contains(t, out.String(), "CAP_NET_ADMIN", "setcap", "xroce check xr0")
}

func TestRootMTUTooSmall(t *testing.T) {
	_, in := pair(t, vethpair.Options{MTU: 300, NoAddrs: true})
	i := in(vethpair.A).run(t, "serve", "-d", "xr0", "--insecure", "--dir", t.TempDir())
	if i.code != exitFailure {
		t.Errorf("code %d", i.code)
	}
	contains(t, i.stderr, "MTU 300 of xr0 is too small", "ip link set xr0 mtu 1500")
	i = in(vethpair.A).run(t, "check", "xr0")
	if i.code != exitUnsupported {
		t.Errorf("check: code %d", i.code)
	}
	contains(t, i.stdout, "ip link set xr0 mtu 1500")
}

// leftovers lists the namespaces of a process.
func leftovers(t *testing.T, pid int) []string {
	t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/run/netns/xroce-%d-*", pid))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRootDemo(t *testing.T) {
	t.Parallel()
	xsktest.NeedRoot(t)
	file := filepath.Join(t.TempDir(), "demo.pcapng")
	var stdout, stderr strings.Builder
	cmd := child(t, 0, "demo", "--time", "5ms", "--capture", file)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v, %s\n%s", err, stderr.String(), stdout.String())
	}
	contains(t, stdout.String(), "backend xsk", "native XDP", "copy mode", "device xr0", "MTU 4200",
		"path MTU 4096", "64.0 MiB", demoPassed)
	judgeByTshark(t, file)
	if left := leftovers(t, cmd.Process.Pid); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestRootDemoPanicLeavesNothing(t *testing.T) {
	xsktest.NeedRoot(t)
	t.Setenv("TMPDIR", t.TempDir())
	before := leftovers(t, os.Getpid())
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = demo.Run(t.Context(), demo.Options{
			Device: engine.Options{}, FileSize: 1,
			Hook: func(s demo.Stage) {
				if s == demo.StageCapture {
					panic("at the worst moment")
				}
			},
		})
	}()
	onlyFiles(t, os.TempDir())
	if after := leftovers(t, os.Getpid()); len(after) != len(before) {
		t.Errorf("left: %q, before %q", after, before)
	}
}

// TestRootDemoQueues: everything works on a cable that scatters packets over four queues of each
// host, with one thread for them and with two.
func TestRootDemoQueues(t *testing.T) {
	t.Parallel() // it waits most of the time
	xsktest.NeedRoot(t)
	for _, drivers := range []string{"1", "2"} {
		i := bench{machine: goodMachine()}.run(t, "demo", "--queues", "4", "--drivers", drivers,
			"--size", "4097", "--time", "1ms", "--file-size", "1000000")
		if i.code != exitOK {
			t.Fatalf("%s drivers: code %d, stderr %s\n%s", drivers, i.code, i.stderr, i.stdout)
		}
		contains(t, i.stdout, "backend xsk", " 0 failed")
	}
}

// TestRootDemoInterrupted sends Ctrl-C to a demonstration that has begun.
func TestRootDemoInterrupted(t *testing.T) {
	t.Parallel() // it waits most of the time
	xsktest.NeedRoot(t)
	temp := t.TempDir()
	cmd := child(t, 0, "demo", "--time", "10s")
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The first line says that everything is there.
	var first [5]byte
	if _, err := io.ReadFull(stdout, first[:]); err != nil || string(first[:]) != "wire:" {
		t.Errorf("begins with %q, %v", first, err)
	}
	if len(leftovers(t, cmd.Process.Pid)) != 2 {
		t.Error("does not have two namespaces")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("ends with %v: %s", err, &stderr)
	}
	contains(t, string(rest), "demo: ", " 0 failed")
	if left := leftovers(t, cmd.Process.Pid); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	onlyFiles(t, temp)
}
