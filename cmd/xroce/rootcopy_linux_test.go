package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

func TestRootCopy(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200})
	dir := t.TempDir()
	token := tokenFile(t)
	server := in(vethpair.A).start(t, "serve", "-d", "xr0", "--dir", dir, "--token-file", token)
	server.listenPort(t)
	name, content := randomFile(t, 50_000_001, 0o750)
	i := in(vethpair.B).run(t, "copy", name, p.A.IPv4.Addr().String()+":file",
		"--token-file", token)
	if i.code != exitOK || !i.quiet() {
		t.Fatalf("code %d, %s", i.code, i.stderr)
	}
	sameFile(t, filepath.Join(dir, "file"), content)
	// The same over IPv6.
	i = in(vethpair.B).run(t, "copy", name, "["+p.A.IPv6.Addr().String()+"]:file6",
		"--token-file", token)
	if i.code != exitOK {
		t.Errorf("IPv6: code %d, %s", i.code, i.stderr)
	}
	onlyFiles(t, dir, "file", "file6")
}

// TestRootCopyManyWays sends a directory and standard input, and has both sent back, between two
// processes in two namespaces.
func TestRootCopyManyWays(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200})
	dir, back, tree := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "tree")
	small, large := bytes.Repeat([]byte("s"), 700), bytes.Repeat([]byte("large"), 1<<20)
	if err := errors.Join(os.MkdirAll(filepath.Join(tree, "sub"), 0o755),
		os.WriteFile(filepath.Join(tree, "sub", "small"), small, 0o644),
		os.WriteFile(filepath.Join(tree, "large"), large, 0o644)); err != nil {
		t.Fatal(err)
	}
	server := child(t, 0, "serve", "--insecure", "--allow-read", "-d", "xr0", "--dir", dir)
	startReady(t, p, server)
	host := p.A.IPv4.Addr().String()
	b := in(vethpair.B)
	b.change = func(a *app) { a.stdin = bytes.NewReader(large) }
	for _, args := range [][]string{
		{"-r", tree, host + ":"},
		{"-", host + ":tree/stdin"},
		{host + ":tree/stdin", back},
		{host + ":tree/sub/small", back},
	} {
		b.run(t, append([]string{"copy", "-d", "xr0"}, args...)...).exited(t, exitOK)
	}
	i := b.run(t, "copy", "-d", "xr0", host+":tree/large", "-")
	if i.exited(t, exitOK); i.stdout != string(large) {
		t.Errorf("%d bytes on standard output", len(i.stdout))
	}
	kill(t, server)
	onlyFiles(t, filepath.Join(dir, "tree"), "large", "stdin", "sub")
	onlyFiles(t, back, "small", "stdin")
	sameFile(t, filepath.Join(dir, "tree", "sub", "small"), small)
	sameFile(t, filepath.Join(dir, "tree", "large"), large)
	sameFile(t, filepath.Join(back, "small"), small)
	sameFile(t, filepath.Join(back, "stdin"), large)
}

// sameFile fails the test unless a file has a content.
func sameFile(t *testing.T, name string, content []byte) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s differs: %d bytes, %v", name, len(got), err)
	}
}

// slowFile is so large that a copy can be killed half way.
const slowFile = 1 << 30

// longFile is the length of a file that can be disturbed half way, and is compared: with the race
// detector a quarter of it takes as long.
func longFile() int {
	if raceDetector {
		return 50 << 20
	}
	return 200 << 20
}

// sparseFile makes a file of that size, and takes no room for it.
func sparseFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sparse")
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, slowFile)); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestRootPeerKilled kills the receiver, then the sender, in the middle: the other end, told
// not to wait for it, fails and leaves nothing.
func TestRootPeerKilled(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, killed := range []string{"server", "client"} {
		t.Run(killed, func(t *testing.T) {
			t.Parallel() // each waits until the other end is given up
			disturbed(t, func() bool { return survives(t, killed) })
		})
	}
}

// disturbed does something in the middle of a copy, again when that was over before: on a machine
// that is busy this process may stand still for as long as a copy takes.
func disturbed(t *testing.T, try func() bool) {
	t.Helper()
	for range 10 {
		if try() {
			return
		}
	}
	t.Error("ten copies were over before they were disturbed")
}

// copied reports whether all of a file has its final name.
func copied(dir, name string, size int) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Size() == int64(size)
}

// survives kills one of two ends and looks at what the other does. It reports whether the copy was
// not over before.
func survives(t *testing.T, killed string) bool {
	t.Helper()
	p, in := pair(t, vethpair.Options{MTU: 4200})
	name := sparseFile(t)
	dir := t.TempDir()
	serve := []string{
		"serve", "--once", "--insecure", "-d", "xr0", "--dir", dir, "--keep-partial", "0",
	}
	target := p.A.IPv4.Addr().String() + ":half"
	copyTo := []string{"copy", name, target, "-d", "xr0", "--retry", "0"}
	victim, side, args := child(t, 0, serve...), vethpair.A, copyTo
	if killed == "client" {
		victim, side, args = child(t, 0, copyTo...), vethpair.B, serve
	}
	other := in(1 - side)
	var survivor *invocation
	if killed == "server" {
		startReady(t, p, victim)
		survivor = other.start(t, args...)
	} else {
		survivor = other.start(t, args...)
		survivor.listenPort(t)
		if err := p.Do(side, victim.Start); err != nil {
			t.Fatal(err)
		}
	}
	awaitHalf(t, dir, "half")
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_ = victim.Wait() // killed: an error, as it should be
	survivor.wait(t)
	if copied(dir, "half", slowFile) {
		return false
	}
	if survivor.code != exitFailure {
		t.Errorf("%s killed: the other end's code is %d", killed, survivor.code)
	}
	if took := time.Since(begin); took > timeout.Scaled(20*time.Second) {
		t.Errorf("%s killed: noticed after %v", killed, took)
	}
	contains(t, survivor.stderr, "of 1073741824 bytes: ")
	if _, err := os.Stat(filepath.Join(dir, "half")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s killed: half a file has the final name (%v)", killed, err)
	}
	if killed == "client" {
		onlyFiles(t, dir) // the server lives, and cleans up
	}
	return true
}

// TestRootServerRestarted kills the server in the middle and starts it again: the copy goes on
// where it was. Then the client is, and another one goes on.
func TestRootServerRestarted(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200})
	name, content := randomFile(t, longFile(), 0o600)
	to := p.A.IPv4.Addr().String() + ":f"
	for _, killed := range []string{"server", "client"} {
		disturbed(t, func() bool {
			dir := t.TempDir()
			serve := []string{"serve", "--insecure", "-d", "xr0", "--dir", dir}
			server := child(t, 0, serve...)
			startReady(t, p, server)
			defer func() { kill(t, server) }()
			copyTo := []string{"copy", name, to, "-d", "xr0", "--json"}
			var client *invocation
			if killed == "server" {
				client = in(vethpair.B).start(t, copyTo...)
				awaitHalf(t, dir, "f")
				kill(t, server)
				over := copied(dir, "f", len(content))
				server = child(t, 0, serve...)
				startReady(t, p, server)
				if client.wait(t); over {
					return false
				}
			} else {
				first := child(t, 0, copyTo...)
				if err := p.Do(vethpair.B, first.Start); err != nil {
					t.Fatal(err)
				}
				awaitHalf(t, dir, "f")
				kill(t, first)
				client = in(vethpair.B).run(t, copyTo...)
				if client.code != exitOK && copied(dir, "f", len(content)) {
					return false // it is refused, because the file is there
				}
			}
			client.exited(t, exitOK)
			if strings.Contains(client.stdout, `"resumed": 0,`) {
				t.Errorf("%s killed: it began again: %s", killed, client.stdout)
			}
			onlyFiles(t, dir, "f")
			sameFile(t, filepath.Join(dir, "f"), content)
			return true
		})
	}
}

// outage is how long a link is down. It is what is tested, and no limit.
const outage = 2 * time.Second

// TestRootLinkDown takes the link down for two seconds in the middle: the copy goes on, and is one
// file with every byte.
func TestRootLinkDown(t *testing.T) {
	t.Parallel() // it waits most of the time
	disturbed(t, func() bool { return outlivesOutage(t) })
}

// outlivesOutage reports whether the copy was not over before the link was down.
func outlivesOutage(t *testing.T) bool {
	t.Helper()
	p, in := pair(t, vethpair.Options{MTU: 4200})
	name, content := randomFile(t, longFile(), 0o600)
	dir := t.TempDir()
	server := in(vethpair.A).start(t, "serve", "--insecure", "-d", "xr0", "--dir", dir)
	server.listenPort(t)
	client := in(vethpair.B).start(t, "copy", name, p.A.IPv4.Addr().String()+":f", "-d", "xr0")
	awaitHalf(t, dir, "f")
	set := func(change func(netlink.Link) error) {
		t.Helper()
		err := p.Do(vethpair.B, func() error {
			link, err := netlink.LinkByName(vethpair.IfName)
			return errors.Join(err, change(link))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(netlink.LinkSetDown)
	select {
	case <-client.done:
		if copied(dir, "f", len(content)) {
			return false
		}
		t.Errorf("it ended while the link was down: code %d, %s", client.code, client.stderr)
	case <-time.After(outage):
	}
	set(netlink.LinkSetUp)
	client.wait(t).exited(t, exitOK)
	onlyFiles(t, dir, "f")
	sameFile(t, filepath.Join(dir, "f"), content)
	return true
}

// A readiness is where a child tells that it is ready.
type readiness struct {
	once  sync.Once
	ready chan struct{}
	mu    sync.Mutex
	text  bytes.Buffer
}

func (r *readiness) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(b)
	if bytes.Contains(r.text.Bytes(), []byte("xroce: ready")) {
		r.once.Do(func() { close(r.ready) })
	}
	return len(b), nil
}

// startReady starts a server in namespace A and waits until it is ready.
func startReady(t *testing.T, p *vethpair.Pair, server *exec.Cmd) {
	t.Helper()
	told := &readiness{ready: make(chan struct{})}
	server.Stderr = told
	if err := p.Do(vethpair.A, server.Start); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told.ready:
	case <-time.After(timeout.Scaled(20 * time.Second)):
		t.Fatalf("the server is not ready: %s", &told.text)
	}
}

// kill kills a child.
func kill(t *testing.T, child *exec.Cmd) {
	t.Helper()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed: an error, as it should be
}

// awaitHalf waits until a file in the making has some bytes, or has its final name already.
func awaitHalf(t *testing.T, dir, final string) {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); time.Now().Before(end); {
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
		parts, err := filepath.Glob(filepath.Join(dir, ".xroce-*.part"))
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) == 1 {
			if info, err := os.Stat(parts[0]); err == nil && info.Size() > 4<<20 {
				return
			}
		}
		if _, err := os.Stat(filepath.Join(dir, final)); err == nil {
			return
		}
	}
	t.Fatal("no transfer begins")
}
