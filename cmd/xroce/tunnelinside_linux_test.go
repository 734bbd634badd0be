package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// The addresses that A has inside a tunnel.
const (
	insideIPv4 = "198.18.7.1"
	insideIPv6 = "fd07::1"
)

// insidePatience is how long traffic inside may take.
const insidePatience = 60 * time.Second

// A joined is two hosts that a tunnel joins by interfaces in0.
type joined struct {
	t       *testing.T
	pair    *vethpair.Pair
	tunnels [2]*exec.Cmd
	again   int // datagrams that were sent again, because they had not come
}

// join makes a pair and a tunnel on it.
func join(t *testing.T, o vethpair.Options, flags string) *joined {
	t.Helper()
	p, _ := pair(t, o)
	return joinOn(t, p, flags)
}

// joinOn makes a tunnel with addresses inside: of A those above, of B the next ones.
func joinOn(t *testing.T, p *vethpair.Pair, flags string) *joined {
	t.Helper()
	w := &joined{t: t, pair: p, tunnels: startTunnels(t, p, flags)}
	for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		w.do(side, func() error {
			link, err := netlink.LinkByName("in0")
			if err != nil {
				return err
			}
			for _, form := range []string{"198.18.7.%d/24", "fd07::%d/64"} {
				text := fmt.Sprintf(form, 1+int(side))
				a, err := netlink.ParseAddr(text)
				if err != nil {
					return err
				}
				a.Flags = unix.IFA_F_NODAD
				if err := netlink.AddrAdd(link, a); err != nil {
					return fmt.Errorf("%s: %w", text, err)
				}
			}
			return nil
		})
	}
	return w
}

// do does something at one end.
func (w *joined) do(side vethpair.Side, f func() error) {
	w.t.Helper()
	if err := w.pair.Do(side, f); err != nil {
		w.t.Fatal(err)
	}
}

// inside is in0 at one end.
func (w *joined) inside(side vethpair.Side) (ifi *net.Interface) {
	w.t.Helper()
	w.do(side, func() (err error) {
		ifi, err = net.InterfaceByName("in0")
		return err
	})
	return ifi
}

// A stream is a connection of TCP inside, from B to A.
type stream struct{ from, to *net.TCPConn }

// connect makes one to an address of A.
func (w *joined) connect(to string) (s stream) {
	w.t.Helper()
	var l net.Listener
	w.do(vethpair.A, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(to, "0"))
		return err
	})
	defer l.Close()
	w.do(vethpair.B, func() error {
		d := net.Dialer{Deadline: time.Now().Add(timeout.Scaled(insidePatience))}
		c, err := d.Dial("tcp", l.Addr().String())
		// The kernel asks three times in three seconds who has the address, and gives up: that is
		// less than the ends of a tunnel may take to find each other on a machine that is busy.
		for errors.Is(err, unix.EHOSTUNREACH) && time.Now().Before(d.Deadline) {
			c, err = d.Dial("tcp", l.Addr().String())
		}
		if err == nil {
			s.from = c.(*net.TCPConn)
		}
		return err
	})
	w.t.Cleanup(func() { s.from.Close() })
	c, err := l.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	s.to = c.(*net.TCPConn)
	return s
}

// back is the same stream the other way.
func (s stream) back() stream { return stream{s.to, s.from} }

// bring sends so many bytes and compares what comes.
func (s stream) bring(t *testing.T, n int) {
	t.Helper()
	s.send(t, n)(t)
}

// send sends so many bytes, and returns what receives them.
func (s stream) send(t *testing.T, n int) (receive func(*testing.T)) {
	t.Helper()
	late := time.Now().Add(timeout.Scaled(insidePatience))
	for _, c := range []*net.TCPConn{s.from, s.to} {
		if err := c.SetDeadline(late); err != nil {
			t.Fatal(err)
		}
	}
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(data)
	sent := make(chan error, 1)
	go func() {
		_, err := s.from.Write(data)
		sent <- err
	}()
	return func(t *testing.T) {
		t.Helper()
		came := make([]byte, n)
		if got, err := io.ReadFull(s.to, came); err != nil {
			t.Fatalf("%d of %d bytes came: %v", got, n, err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if !bytes.Equal(came, data) {
			t.Errorf("%d bytes came, and other ones", n)
		}
	}
}

// retransmits is how many segments its sender has sent again.
func (s stream) retransmits(t *testing.T) (n uint32) {
	t.Helper()
	raw, err := s.from.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	closed := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if closed != nil || err != nil {
		t.Fatal(closed, err)
	}
	return info.Total_retrans
}
