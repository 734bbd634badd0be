package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"xroce/engine/tunnel"
	"xroce/xsk/xsktest/timeout"
)

// A rawSocket sends and receives the frames of an interface.
type rawSocket struct {
	fd, ifindex int
}

// rawSocketIn opens one in a namespace, for frames that come by the interface and that it sends.
func rawSocketIn(t *testing.T, ns, iface string) *rawSocket {
	t.Helper()
	s := &rawSocket{fd: -1}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread stays in the namespace, and ends
		done <- s.open(ns, iface)
	}()
	err := <-done
	t.Cleanup(func() { unix.Close(s.fd) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *rawSocket) open(ns, iface string) error {
	handle, err := netns.GetFromName(ns)
	if err != nil {
		return err
	}
	defer handle.Close()
	if err := netns.Set(handle); err != nil {
		return err
	}
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	s.ifindex = link.Index
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
		return err
	}
	wait := unix.NsecToTimeval(int64(100 * time.Millisecond))
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index})
}

// next is the next frame that has the mark in it and came by the interface, nil after a while.
func (s *rawSocket) next(t *testing.T, mark []byte, wait time.Duration) []byte {
	t.Helper()
	b := make([]byte, 1<<16)
	for end := time.Now().Add(wait); time.Now().Before(end); {
		n, from, err := unix.Recvfrom(s.fd, b, 0)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			continue
		case err != nil:
			t.Fatal(err)
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		if ok && link.Ifindex == s.ifindex && link.Pkttype != unix.PACKET_OUTGOING &&
			bytes.Contains(b[:n], mark) {
			return b[:n]
		}
	}
	return nil
}

// nextOf sends until a frame that has the mark in it comes, nil after a while, and returns how
// often it had to send it again.
func (s *rawSocket) nextOf(t *testing.T, mark []byte, send func()) (frame []byte, again int) {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(insidePatience)); time.Now().Before(end); again++ {
		send()
		if frame = s.next(t, mark, timeout.Scaled(againAfter)); frame != nil {
			break
		}
	}
	return frame, again
}

// startTunnel starts a tunnel in a namespace, and returns what it says when it is ready.
func startTunnel(t *testing.T, ns, flags string) (cmd *exec.Cmd, said string) {
	t.Helper()
	cmd = within(t, ns, append([]string{"tunnel", "-d", "xr0", "--tap", "in0", "--json"},
		strings.Fields(flags)...)...)
	cmd.Stdout = &bytes.Buffer{}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	line := make([]byte, 4096)
	n, err := stderr.Read(line)
	if !strings.HasPrefix(string(line[:n]), "xroce: ready") {
		t.Fatalf("%s: says %q, %v", flags, line[:n], err)
	}
	go io.Copy(io.Discard, stderr)
	return cmd, string(line[:n])
}

// endTunnel ends a tunnel and returns what it has counted.
func endTunnel(t *testing.T, cmd *exec.Cmd) (s tunnel.Stats) {
	t.Helper()
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal(cmd.Stdout.(*bytes.Buffer).Bytes(), &s); err != nil {
		t.Fatalf("%v: %s", err, cmd.Stdout)
	}
	return s
}

// TestRootTunnelMark: packets on the wire have the DSCP that --tos says, of connections, too.
func TestRootTunnelMark(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, over := range []string{"ud", "rc", "uc"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			hosts, bridge := hostsOnBridge(t, 2, 1500)
			flags := " --tos 0xb8 --over " + over
			a, _ := startTunnel(t, hosts[0], "--peer 10.99.0.2"+flags)
			b, _ := startTunnel(t, hosts[1], "--peer 10.99.0.1"+flags)
			inside, wire := rawSocketIn(t, hosts[0], "in0"), rawSocketIn(t, bridge, "p0")
			there := rawSocketIn(t, hosts[1], "in0")
			broadcastUntilHeard(t, inside, []*rawSocket{there})
			mark := []byte("what has a mark")
			frame, again := wire.nextOf(t, mark, func() { inside.broadcast(t, mark) })
			if len(frame) < 34 || frame[12] != 8 || frame[13] != 0 || frame[15] != 0xb8 {
				t.Errorf("%x... on the wire", frame[:min(len(frame), 34)])
			}
			excused(t, again, 1, endTunnel(t, a), endTunnel(t, b))
		})
	}
}

// addIPv6 gives hosts addresses from fd99::1 on.
func addIPv6(t *testing.T, hosts []string) {
	t.Helper()
	for i, ns := range hosts {
		out, err := exec.Command("ip", "-n", ns, "addr", "add", fmt.Sprintf("fd99::%d/64", i+1),
			"dev", "xr0", "nodad").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// anyFrames is how many frames a packet of RC is, which may be sent again.
const anyFrames = -1

// TestRootTunnelHub: a hub that names nobody learns two sites that name it, over UD also with a
// group of IPv4 or IPv6: then a broadcast of the hub is one frame on its wire, and else two.
func TestRootTunnelHub(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, tt := range []struct {
		flags  string
		frames int
		ipv6   bool
	}{
		{"", 2, false},
		{"--group 239.192.0.1", 1, false},
		{"--over rc", anyFrames, false},
		{"--group ff15::7:7", 1, true},
		{"--group ff12:401b:ffff::ffff:ffff", 1, true},
	} {
		t.Run(tt.flags, func(t *testing.T) {
			t.Parallel()
			hosts, bridge := hostsOnBridge(t, 3, 1500)
			prefix, of := "10.99.0.0/24", "10.99.0.1"
			if tt.ipv6 {
				prefix, of = "fd99::/64", "fd99::1"
				addIPv6(t, hosts)
			}
			hub, said := startTunnel(t, hosts[0], "--learn "+prefix+" "+tt.flags)
			contains(t, said, "0 peers and up to 16 of "+prefix)
			var sites []*exec.Cmd
			for _, ns := range hosts[1:] {
				site, _ := startTunnel(t, ns, "--peer "+of+" "+tt.flags)
				sites = append(sites, site)
			}
			inside := rawSocketIn(t, hosts[0], "in0")
			wire := rawSocketIn(t, bridge, "p0")
			there := []*rawSocket{
				rawSocketIn(t, hosts[1], "in0"), rawSocketIn(t, hosts[2], "in0"),
			}
			broadcastUntilHeard(t, inside, there)
			mark := []byte("what is for all sites")
			sent, lost := 0, 0
			send := func() {
				if sent++; sent == 1 || tt.frames == anyFrames {
					inside.broadcast(t, mark)
				}
			}
			for i, s := range there {
				frame, again := s.nextOf(t, mark, send)
				if frame == nil {
					t.Errorf("it did not come to site %d", i)
				}
				if tt.frames == anyFrames { // else it is late and was sent once
					lost += again
				}
			}
			count := 0
			for wire.next(t, mark, time.Second) != nil {
				count++
			}
			if count != tt.frames && tt.frames != anyFrames {
				t.Errorf("%d frames on the wire, want %d", count, tt.frames)
			}
			s := endTunnel(t, hub)
			excused(t, lost, 1, s)
			if s.Learned != 2 || len(s.Peers) != 2 || !s.Peers[0].Learned ||
				(s.Group != nil) != strings.Contains(tt.flags, "group") {
				t.Errorf("%+v", s)
			}
			for _, site := range sites {
				if s := endTunnel(t, site); len(s.Peers) != 1 || s.Peers[0].RxDatagrams == 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// broadcast sends a frame for all by the interface.
func (s *rawSocket) broadcast(t *testing.T, text []byte) {
	t.Helper()
	frame := append([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x88\xb6"), text...)
	frame = append(frame, make([]byte, 100)...)
	if err := unix.Sendto(s.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: s.ifindex}); err != nil {
		t.Fatal(err)
	}
}

// rolls counts the calls of broadcastUntilHeard: each has a mark of its own.
var rolls atomic.Uint64

// broadcastUntilHeard waits until what one end of a tunnel broadcasts has come to all others: to
// each any of it, because on a machine that is busy a frame may come when the next is under way.
func broadcastUntilHeard(t *testing.T, from *rawSocket, to []*rawSocket) {
	t.Helper()
	mark := fmt.Appendf(nil, "are all there? %08d", rolls.Add(1))
	end := time.Now().Add(timeout.Scaled(60 * time.Second))
	for deaf := slices.Clone(to); len(deaf) > 0; {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are not there", len(deaf), len(to))
		}
		from.broadcast(t, mark)
		deaf = slices.DeleteFunc(deaf, func(s *rawSocket) bool {
			return s.next(t, mark, 100*time.Millisecond) != nil
		})
	}
}
