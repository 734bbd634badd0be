package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine"
)

// asNobody has a command run by somebody who is not root where files are concerned: the thread that
// it runs on is nobody's there, and ends with it. Who is not root stays who he is.
func asNobody(f func()) {
	runtime.LockOSThread()
	_ = unix.Setfsuid(65534)
	f()
}

// A denial has what nobody but root may use, and a directory that everybody can look into.
type denial struct {
	open           string // the directory
	secret, locked string // a file that may not be read, and a directory with a file
}

func denied(t *testing.T) (d denial) {
	t.Helper()
	d.open = t.TempDir()
	d.secret, d.locked = filepath.Join(d.open, "secret"), filepath.Join(d.open, "locked")
	hidden := filepath.Join(d.locked, "hidden")
	err := errors.Join(os.Chmod(filepath.Dir(d.open), 0o755), os.Mkdir(d.locked, 0o700),
		os.WriteFile(d.secret, []byte("secret"), 0o600),
		os.WriteFile(hidden, []byte("hidden"), 0o600),
		os.WriteFile(filepath.Join(d.open, "public"), []byte("public"), 0o644),
		os.Chmod(d.secret, 0), os.Chmod(d.locked, 0)) // also for who is not root
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(d.locked, 0o700) })
	return d
}

// deniedBench has a server, of a directory, and nobody at the other end.
func deniedBench(t *testing.T, flags ...string) (b bench, d denial, served string) {
	t.Helper()
	b, _ = simBench(t)
	d, served = denied(t), t.TempDir()
	server := b.start(t, append([]string{"serve", "-d", "xr1", "--insecure", "--dir", served},
		flags...)...)
	server.listenPort(t)
	b.around = asNobody
	return b, d, served
}

// TestDeniedFilesFail: a file that the user named, and may not read or write, is a failure, and not
// something that this machine cannot do; nor is it said that capabilities would help.
func TestDeniedFilesFail(t *testing.T) {
	b, d, served := deniedBench(t, "--allow-read")
	if err := os.WriteFile(filepath.Join(served, "there"), []byte("there"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"copy -d xr2 SECRET 192.0.2.1:",
		"copy -d xr2 LOCKED/hidden 192.0.2.1:",
		"copy -d xr2 -r LOCKED 192.0.2.1:",
		"copy -d xr2 192.0.2.1:there LOCKED/",
		"copy -d xr2 OPEN/public 192.0.2.1: --token-file SECRET",
		"serve -d xr2 --insecure --dir LOCKED",
		"pingpong -d xr2 -p 0 --capture LOCKED/c",
		"perf write-bw -d xr2 --mmap SECRET",
		"tunnel -d xr2 --tap tap0 --peer 192.0.2.1 --config SECRET",
		"tunnel -d xr2 --tap tap0 --peer 192.0.2.1 --key SECRET",
		"pktgen -d xr2 --to 192.0.2.1 --scenario SECRET",
		"analyze SECRET",
		"analyze --html LOCKED/page " + captures + "/rc_send_v4.pcap",
		"decode SECRET",
		"msg decode SECRET",
		"sim --congestion incast-8-dcqcn --svg LOCKED/plot.svg",
		"wireshark --install --dir LOCKED/plugins",
		"extcap --install --dir LOCKED/extcap",
		"demo --sim --capture LOCKED/c",
	} {
		i := b.run(t, strings.Fields(strings.NewReplacer("SECRET", d.secret, "LOCKED", d.locked,
			"OPEN", d.open).Replace(line))...)
		if i.code != exitFailure {
			t.Errorf("%s: code %d", line, i.code)
		}
		contains(t, i.stderr, "permission denied")
		if strings.Contains(i.stderr, "CAP_NET") {
			t.Errorf("%s: %s", line, i.stderr)
		}
	}
	onlyFiles(t, served, "there")
}

// TestDeniedFileOfADirectory: what may be read of a directory is sent, and what may not is a
// failure.
func TestDeniedFileOfADirectory(t *testing.T) {
	b, d, served := deniedBench(t)
	i := b.run(t, "copy", "-d", "xr2", "-r", d.open, "192.0.2.1:all")
	i.exited(t, exitFailure)
	contains(t, i.stderr, "2 of 3 files were not copied", "secret was not copied",
		"locked was not copied")
	onlyFiles(t, filepath.Join(served, "all"), "public")
}

// TestDeniedDirectoryOfSeveral: a directory that the user named and may not read is a failure, and
// does not keep the rest back.
func TestDeniedDirectoryOfSeveral(t *testing.T) {
	b, d, served := deniedBench(t)
	i := b.run(t, "copy", "-d", "xr2", "-r", d.locked, filepath.Join(d.open, "public"),
		"192.0.2.1:")
	i.exited(t, exitFailure)
	contains(t, i.stderr, "locked was not copied", "1 of 2 files were not copied")
	onlyFiles(t, served, "public")
}

// TestDeniedDeviceIsUnsupported: who may not open a device can skip what needs one, also where its
// packets were to be kept.
func TestDeniedDeviceIsUnsupported(t *testing.T) {
	b, _ := simBench(t)
	b.open = func(string, engine.Options) (*engine.Device, error) {
		return nil, fmt.Errorf("socket: %w", unix.EPERM)
	}
	capture := filepath.Join(t.TempDir(), "c")
	i := b.run(t, "pingpong", "-d", "xr2", "-p", "0", "--capture", capture)
	i.exited(t, exitUnsupported)
	contains(t, i.stderr, "CAP_NET_RAW")
}

// TestDeniedPlaceEndsOnce: a server of one connection that may not write its file has failed.
func TestDeniedPlaceEndsOnce(t *testing.T) {
	s := &server{once: true}
	s.failed("192.0.2.2", fmt.Errorf("create file: %w", unix.EACCES), true)
	if code := exitCode(t.Context(), s.err, true); code != exitFailure {
		t.Errorf("%v: code %d", s.err, code)
	}
}
