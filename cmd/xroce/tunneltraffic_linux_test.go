package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/tunnel"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// TestRootTunnelTraffic sends what iperf3 and others do through tunnels: several connections of TCP
// both ways at once, and datagrams of UDP of all lengths that must not be cut by IP, up to the MTU
// inside: 1500 and 9000, which is more than the link has.
func TestRootTunnelTraffic(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		name, flags string
		mtu         int
		ways        uint64 // of each peer
	}{
		{"ud", "--tap in0", 1500, 1},
		{"jumbo over rc", "--tap in0 --over rc --mtu 9000", 9000, 1},
		{"jumbo over ud", "--tap in0 --mtu 9000", 9000, 1},
		{"jumbo over uc", "--tap in0 --over uc --mtu 9000", 9000, 1},
		{"ip over rc", "--tun in0 --over rc --mtu 9000", 9000, 1},
		{"two queues", "--tap in0 --over rc --inside-queues 2", 1500, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := join(t, vethpair.Options{}, c.flags+" --json")
			var streams sync.WaitGroup
			for range 2 {
				s := w.connect(insideIPv4)
				streams.Go(func() { s.bring(t, 2<<20) })
				streams.Go(func() { s.back().bring(t, 2<<20) })
			}
			streams.Wait()
			w.datagrams(insideIPv4, c.mtu-28, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER)
			w.datagrams(insideIPv6, c.mtu-48, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER)
			stats := w.end()
			excused(t, w.again, c.ways, stats[:]...)
		})
	}
}

// datagrams sends UDP to A that IP must not cut, of lengths up to the longest, a few at a time: all
// come.
func (w *joined) datagrams(to string, longest, level, option int) {
	w.t.Helper()
	const batch, batches = 8, 25
	whole := setting(func(fd int) error {
		return unix.SetsockoptInt(fd, level, option, unix.IP_PMTUDISC_DO)
	})
	at := w.listen(vethpair.A, "udp", net.JoinHostPort(to, "0"), nil)
	from := w.listen(vethpair.B, "udp", ":0", whole)
	content := func(number int) []byte {
		size := max(longest-number*longest/(batch*batches), 4)
		b := bytes.Repeat([]byte{byte(number)}, size)
		binary.BigEndian.PutUint32(b, uint32(number))
		return b
	}
	missing := map[int]bool{}
	send := func() {
		for _, number := range slices.Sorted(maps.Keys(missing)) {
			if _, err := from.WriteTo(content(number), at.LocalAddr()); err != nil {
				w.t.Fatalf("datagram %d: %v", number, err) // or it is late
			}
		}
	}
	buf := make([]byte, longest+1)
	for n := range batches {
		for i := range batch {
			missing[n*batch+i] = true
		}
		send()
		for len(missing) > 0 {
			got, err := w.hear(at, buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				w.again += len(missing)
				send()
				continue
			}
			if err != nil || got < 4 {
				w.t.Fatalf("batch %d: %d bytes, %v", n, got, err)
			}
			number := int(binary.BigEndian.Uint32(buf))
			if !missing[number] && (w.again == 0 || number >= (n+1)*batch) ||
				!bytes.Equal(buf[:got], content(number)) {
				w.t.Fatalf("batch %d: datagram %d of %d bytes is another", n, number, got)
			}
			delete(missing, number)
		}
	}
}

// againAfter is how long what is sent through a tunnel is waited for. An end that is not scheduled
// for some seconds loses its connection, and what is sent until there is another one is dropped:
// then it is sent again.
const againAfter = 10 * time.Second

// hear is the next datagram that comes in time.
func (w *joined) hear(at net.PacketConn, buf []byte) (n int, err error) {
	w.t.Helper()
	if err := at.SetReadDeadline(time.Now().Add(timeout.Scaled(againAfter))); err != nil {
		w.t.Fatal(err)
	}
	n, _, err = at.ReadFrom(buf)
	return n, err
}

// excused fails the test when something was sent again, though no end of the tunnel has found a
// peer more often than it has ways to it, so that no connection was lost, or has given up a frame
// whose segments came too late.
func excused(t *testing.T, again int, ways uint64, ends ...tunnel.Stats) {
	t.Helper()
	late := slices.ContainsFunc(ends, func(s tunnel.Stats) bool {
		return s.Dropped["incomplete"] > 0
	})
	if again > 0 && !late && !foundAgain(ways, ends...) {
		t.Errorf("%d frames were lost, and no connection: %+v", again, ends)
	}
}

// foundAgain reports whether an end of a tunnel has lost a peer and found it again.
func foundAgain(ways uint64, ends ...tunnel.Stats) bool {
	return slices.ContainsFunc(ends, func(s tunnel.Stats) bool {
		return slices.ContainsFunc(s.Peers, func(p tunnel.PeerStats) bool {
			return p.Connects > ways
		})
	})
}

// listen makes a socket of UDP at one end.
func (w *joined) listen(
	side vethpair.Side, network, address string,
	set func(string, string, syscall.RawConn) error,
) (c net.PacketConn) {
	w.t.Helper()
	w.do(side, func() (err error) {
		l := net.ListenConfig{Control: set}
		c, err = l.ListenPacket(w.t.Context(), network, address)
		return err
	})
	w.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(timeout.Scaled(insidePatience))); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// setting sets options of a socket.
func setting(set func(fd int) error) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if closed := c.Control(func(fd uintptr) { err = set(int(fd)) }); closed != nil {
			return closed
		}
		return err
	}
}

// TestRootTunnelForAll: what DHCP asks and what is sent to groups comes to the other end, over all
// that a TAP travels over.
func TestRootTunnelForAll(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, over := range []string{"ud", "rc", "uc", "native"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := join(t, vethpair.Options{}, "--tap in0 --json --over "+over)
			w.connect(insideIPv4).bring(t, 1000) // the peers have found each other
			a, b := w.inside(vethpair.A), w.inside(vethpair.B)
			client := w.listen(vethpair.B, "udp4", "0.0.0.0:68", setting(func(fd int) error {
				return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, b.Name)
			}))
			server := w.listen(vethpair.A, "udp4", "0.0.0.0:67", setting(func(fd int) error {
				return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, a.Name)
			}))
			// The shortest that DHCP is sure of (RFC 2131 2), and the longest.
			for _, n := range []int{576 - 28, 1500 - 28} {
				w.reaches(client, server, &net.UDPAddr{IP: net.IPv4bcast, Port: 67}, n)
			}
			group4 := &net.UDPAddr{IP: net.IPv4(239, 1, 2, 3), Port: 5000}
			from := w.listen(vethpair.B, "udp4", ":0", setting(func(fd int) error {
				by := unix.IPMreqn{Ifindex: int32(b.Index)}
				return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &by)
			}))
			w.reaches(from, w.member("udp4", a, group4), group4, 1000)
			group6 := &net.UDPAddr{IP: net.ParseIP("ff02::4242"), Port: 5000}
			// By number: the library keeps what number a name has for a minute, for all
			// namespaces, and in0 of another test may have another one.
			there := &net.UDPAddr{
				IP: group6.IP, Port: group6.Port, Zone: strconv.Itoa(b.Index),
			}
			w.reaches(w.listen(vethpair.B, "udp6", ":0", setting(func(fd int) error {
				return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, b.Index)
			})), w.member("udp6", a, group6), there, 1000)
			stats := w.end()
			excused(t, w.again, 1, stats[:]...)
		})
	}
}

// member is a socket of A that is in a group.
func (w *joined) member(network string, by *net.Interface, group *net.UDPAddr) (c *net.UDPConn) {
	w.t.Helper()
	w.do(vethpair.A, func() (err error) {
		c, err = net.ListenMulticastUDP(network, by, group)
		return err
	})
	w.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(timeout.Scaled(insidePatience))); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// reaches sends n bytes and compares what comes.
func (w *joined) reaches(from, at net.PacketConn, to net.Addr, n int) {
	w.t.Helper()
	want := bytes.Repeat([]byte{byte(n)}, n)
	buf := make([]byte, n+1)
	for late := time.Now().Add(timeout.Scaled(insidePatience)); ; w.again++ {
		if _, err := from.WriteTo(want, to); err != nil {
			w.t.Fatalf("%s: %v", to, err)
		}
		got, err := w.hear(at, buf)
		if err == nil && bytes.Equal(buf[:got], want) {
			return
		}
		// What was sent again may have come twice, and once for the next call.
		if err == nil && w.again == 0 || time.Now().After(late) {
			w.t.Fatalf("%s: %d bytes of %d came: %v", to, got, n, err)
		}
	}
}
