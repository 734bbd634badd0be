package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"xroce/engine/capture"
	"xroce/engine/capture/filter"
)

// readCapture returns the packets of a file, and its statistics.
func readCapture(t *testing.T, name string) (packets []capture.Packet, s capture.Statistics) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := capture.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			s, _ = r.Statistics()
			return packets, s
		}
		if err != nil {
			t.Fatal(err)
		}
		kept := *p
		kept.Head = append([]byte(nil), p.Head...)
		packets = append(packets, kept)
	}
}

// TestCaptureOfACommand: what both ends of a conversation sent is in their files, with what
// came of it.
func TestCaptureOfACommand(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	at := [2]string{filepath.Join(dir, "server.pcapng"), filepath.Join(dir, "client.pcapng")}
	if err := os.WriteFile(at[0], make([]byte, 1<<20), 0o600); err != nil { // of yesterday
		t.Fatal(err)
	}
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "-n", "3", "--capture", at[0])
	port := server.listenPort(t)
	i := b.run(t, "pingpong", "-d", "xr2", "-p", port, "-n", "3", "--capture", at[1], "127.0.0.1")
	if server.wait(t); i.code != exitOK || server.code != exitOK {
		t.Fatalf("codes %d and %d: %s", server.code, i.code, i.stderr)
	}
	sends, err := filter.Compile("opcode == SEND_ONLY or opcode == SEND_FIRST")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range at {
		packets, stats := readCapture(t, name)
		if stats.Received != uint64(len(packets)) || stats.Dropped != 0 {
			t.Errorf("%s: %d packets, %+v", name, len(packets), stats)
		}
		var ways [3]int
		for i := range packets {
			p := &packets[i]
			want := map[capture.Direction]string{
				capture.Inbound: " accepted", capture.Outbound: " sent",
			}[p.Dir]
			if !strings.HasPrefix(p.Comment, "qp 0x") || !strings.HasSuffix(p.Comment, want) {
				t.Errorf("%s: packet %d: %q", name, i+1, p.Comment)
			}
			if sends.Match(p) {
				ways[p.Dir]++
				if !strings.Contains(p.Comment, " wr ") {
					t.Errorf("%s: packet %d: %q", name, i+1, p.Comment)
				}
			}
		}
		if ways[capture.Inbound] != 3 || ways[capture.Outbound] != 3 {
			t.Errorf("%s: %d came and %d went", name, ways[1], ways[2])
		}
	}
}

// TestCaptureFails: a file that cannot be made ends the command before it begins, a disk that
// is full fails it in the end; nothing else is disturbed.
func TestCaptureFails(t *testing.T) {
	b, _ := simBench(t)
	i := b.run(t, "pingpong", "-d", "xr1", "-p", "0", "--capture", t.TempDir()+"/none/file")
	if i.code != exitFailure || !strings.Contains(i.stderr, "--capture: open ") {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
	i = b.run(t, "pingpong", "-d", "xr1", "--capture", "-")
	if i.code != exitUsage || !strings.Contains(i.stderr, "tcpdump -w -") {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	server := b.start(t, "pingpong", "-d", "xr3", "-p", "0", "-n", "3", "--capture", "/dev/full")
	port := server.listenPort(t)
	i = b.run(t, "pingpong", "-d", "xr4", "-p", port, "-n", "3", "127.0.0.1")
	if server.wait(t); i.code != exitOK || server.code != exitFailure ||
		!strings.Contains(server.stderr, "no space left on device") ||
		!strings.Contains(server.stdout, "bytes in") {
		t.Errorf("codes %d and %d: %s%s", server.code, i.code, server.stdout, server.stderr)
	}
}

// TestCaptureFailsOfAServer: that its packets are lost fails a server as well which ends because it
// is interrupted, in whatever state that is.
func TestCaptureFailsOfAServer(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	b, _ := simBench(t)
	b.runtime = filepath.Join(t.TempDir(), "xroce")
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "--capture", "/dev/full")
	server.awaitReady(t)
	server.cancel()
	server.wait(t).exited(t, exitFailure)
	contains(t, server.stderr, "xroce: capture: write /dev/full: no space left on device\n")
	long := []string{"perf", "send-lat", "-D", "1000", "-u", "22"}
	server = b.start(t, append(long, "-p", "0", "-d", "xr3", "--capture", "/dev/full")...)
	port := server.listenPort(t)
	server.awaitReady(t)
	client := b.start(t, append(long, "-d", "xr4", "-p", port, "127.0.0.1")...)
	dump := b.run(t, "tcpdump", "-i", "xr3", "-c", "1") // until both are at it
	dump.exited(t, exitOK)
	server.cancel()
	server.wait(t).exited(t, exitFailure)
	contains(t, server.stderr, "no space left on device")
	client.cancel()
	client.wait(t)
}

// TestCaptureOfNoDevice: a command that cannot open its device leaves the file that it was to write
// as it is, and makes none.
func TestCaptureOfNoDevice(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	old, none, device := filepath.Join(dir, "old"), filepath.Join(dir, "none"),
		filepath.Join(dir, "device")
	err := os.WriteFile(old, []byte("of yesterday"), 0o600)
	// As /dev/null is, where that may be made.
	null := int(unix.Mkdev(1, 3))
	if err == nil && unix.Mknod(device, unix.S_IFCHR|0o666, null) != nil {
		err = unix.Mkfifo(device, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{old, none, device} {
		i := b.run(t, "pingpong", "-d", "nosuch", "-p", "0", "--capture", name)
		i.exited(t, exitFailure)
		contains(t, i.stderr, "nosuch")
	}
	if got, err := os.ReadFile(old); string(got) != "of yesterday" {
		t.Errorf("what there was is %q now: %v", got, err)
	}
	onlyFiles(t, dir, "device", "old")
}

// TestCaptureEverywhere: every command that opens a device can keep its packets and show its
// counters. Those that only read what there is to know of one open none.
func TestCaptureEverywhere(t *testing.T) {
	opensNone := map[string]bool{"xroce devinfo": true}
	var walk func(c *cobra.Command) int
	walk = func(c *cobra.Command) (n int) {
		opens := c.Flags().Lookup("device") != nil || c.Name() == "check"
		if opens && !opensNone[c.CommandPath()] {
			n++
			for _, flag := range []string{"capture", "metrics"} {
				if c.Flags().Lookup(flag) == nil {
					t.Errorf("%s has no --%s", c.CommandPath(), flag)
				}
			}
		}
		for _, child := range c.Commands() {
			n += walk(child)
		}
		return n
	}
	if n := walk(newApp(io.Discard, io.Discard).rootCommand()); n < 16 {
		t.Errorf("%d commands open a device", n)
	}
	for _, args := range [][]string{
		{"pktgen", "-d", "xr1", "--to", "192.0.2.2", "--capture", "-"},
		{"sink", "-d", "xr1", "--capture", "-"},
		{"check", "xr1", "--serve", "--capture", "-"},
		{"check", "xr1", "--capture", "file"},
	} {
		i := bench{machine: goodMachine()}.run(t, args...)
		if i.code != exitUsage || !strings.Contains(i.stderr, "--capture") {
			t.Errorf("%v: code %d, %s", args, i.code, i.stderr)
		}
	}
}
