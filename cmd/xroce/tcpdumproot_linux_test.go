package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine/capture"
	"xroce/xsk/vethpair"
)

// TestRootTcpdumpDiskFull: a disk that is full ends the capture with the reason, and as many
// packets are said to be written as can be read, also in several files.
func TestRootTcpdumpDiskFull(t *testing.T) {
	for flags, size := range map[string]string{"": "size=64k", "-C1": "size=1536k"} {
		p, in := pair(t, vethpair.Options{MTU: 1500})
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, size); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := unix.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		}()
		b := in(vethpair.A)
		b.runtime = filepath.Join(t.TempDir(), "none")
		args := []string{"tcpdump", "-i", "xr0", "-w", filepath.Join(dir, "f")}
		if flags != "" {
			args = append(args, flags)
		}
		dump := b.start(t, append(args, "udp", "port", "9")...)
		dump.awaitReady(t)
		to := net.UDPAddr{IP: p.A.IPv4.Addr().AsSlice(), Port: 9}
		if err := p.Do(vethpair.B, func() error { return sendUntil(dump.done, &to) }); err != nil {
			t.Fatal(err)
		}
		if dump.wait(t).code != exitFailure {
			t.Errorf("code %d", dump.code)
		}
		contains(t, dump.stderr, "no space left on device")
		says := regexp.MustCompile(`(\d+) packets captured, (\d+) of them written\n`).
			FindStringSubmatch(dump.stderr)
		if says == nil {
			t.Fatal(dump.stderr)
		}
		captured, _ := strconv.Atoi(says[1])
		written, _ := strconv.Atoi(says[2])
		if n := readableIn(t, dir); n != written || n == 0 || captured <= n {
			t.Errorf("%s: %s there are %d", flags, says[0], n)
		}
	}
}

// sendUntil sends datagrams until a channel is closed.
func sendUntil(done <-chan struct{}, to *net.UDPAddr) error {
	conn, err := net.DialUDP("udp", nil, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		select {
		case <-done:
			return nil
		default:
		}
		_, _ = conn.Write(make([]byte, 1400)) // to a port that is refused, once in a while
	}
}

// readableIn returns how many packets can be read of the files in a directory, of which the last
// one may end in a packet.
func readableIn(t *testing.T, dir string) (n int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r, err := capture.NewReader(file)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		for _, err = r.Next(); err == nil; _, err = r.Next() {
			n++
		}
	}
	return n
}
