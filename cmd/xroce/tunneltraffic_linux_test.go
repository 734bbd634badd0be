package main

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	}{
		{"ud", "--tap in0", 1500},
		{"jumbo over rc", "--tap in0 --over rc --mtu 9000", 9000},
		{"jumbo over ud", "--tap in0 --mtu 9000", 9000},
		{"jumbo over uc", "--tap in0 --over uc --mtu 9000", 9000},
		{"ip over rc", "--tun in0 --over rc --mtu 9000", 9000},
		{"two queues", "--tap in0 --over rc --inside-queues 2", 1500},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := join(t, vethpair.Options{}, c.flags)
			var streams sync.WaitGroup
			for range 2 {
				s := w.connect(insideIPv4)
				streams.Go(func() { s.bring(t, 2<<20) })
				streams.Go(func() { s.back().bring(t, 2<<20) })
			}
			streams.Wait()
			w.datagrams(insideIPv4, c.mtu-28, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER)
			w.datagrams(insideIPv6, c.mtu-48, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER)
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
	buf := make([]byte, longest+1)
	for n := range batches {
		var want [batch][]byte
		for i := range want {
			number := n*batch + i
			size := max(longest-number*longest/(batch*batches), 4)
			want[i] = bytes.Repeat([]byte{byte(number)}, size)
			binary.BigEndian.PutUint32(want[i], uint32(number))
			if _, err := from.WriteTo(want[i], at.LocalAddr()); err != nil {
				w.t.Fatalf("%d bytes: %v", size, err)
			}
		}
		for range want {
			got, _, err := at.ReadFrom(buf)
			if err != nil || got < 4 {
				w.t.Fatalf("batch %d: %d bytes, %v", n, got, err)
			}
			number := int(binary.BigEndian.Uint32(buf))
			if i := number - n*batch; i < 0 || i >= batch || !bytes.Equal(buf[:got], want[i]) {
				w.t.Fatalf("batch %d: datagram %d of %d bytes is another", n, number, got)
			}
		}
	}
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
			w := join(t, vethpair.Options{}, "--tap in0 --over "+over)
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
			there := &net.UDPAddr{IP: group6.IP, Port: group6.Port, Zone: b.Name}
			w.reaches(w.listen(vethpair.B, "udp6", ":0", setting(func(fd int) error {
				return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, b.Index)
			})), w.member("udp6", a, group6), there, 1000)
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
	if _, err := from.WriteTo(want, to); err != nil {
		w.t.Fatalf("%s: %v", to, err)
	}
	buf := make([]byte, n+1)
	got, _, err := at.ReadFrom(buf)
	if err != nil || !bytes.Equal(buf[:got], want) {
		w.t.Errorf("%s: %d bytes of %d came: %v", to, got, n, err)
	}
}
