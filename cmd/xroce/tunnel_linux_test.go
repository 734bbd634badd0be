package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// TestRootTunnel joins two hosts by each kind of tunnel: TCP, over IPv4 and IPv6, which needs
// ARP and neighbour discovery on a TAP, brings what was sent. SIGTERM ends both with 0 and
// leaves no interface.
func TestRootTunnel(t *testing.T) {
	p, _ := pair(t, vethpair.Options{})
	for _, tt := range []struct{ name, flags string }{
		{"eoib over ud", "--tap in0"},
		{"ipoib over rc", "--tun in0 --over rc"},
		{"raw over native", "--tap in0 --over native"},
		{"vnic over uc", "--tap in0 --over uc --format vnic --pkey 0x8005"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tunnels := startTunnels(t, p, tt.flags)
			for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
				addAddresses(t, p, side)
			}
			for _, to := range []string{"198.18.7.1", "fd07::1"} {
				bringBytes(t, p, netip.MustParseAddr(to))
			}
			for _, cmd := range tunnels {
				if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			for _, cmd := range tunnels {
				if err := cmd.Wait(); err != nil {
					t.Errorf("%v, %s", err, cmd.Stdout)
				}
				contains(t, fmt.Sprint(cmd.Stdout), "peer ", "in0: ")
			}
			for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
				err := p.Do(side, func() error {
					_, err := netlink.LinkByName("in0")
					return err
				})
				if err == nil {
					t.Error("the interface is still there")
				}
			}
		})
	}
}

// startTunnels starts the command at both ends and waits until it is ready there.
func startTunnels(t *testing.T, p *vethpair.Pair, flags string) (tunnels [2]*exec.Cmd) {
	t.Helper()
	for i, peer := range []string{p.B.IPv4.Addr().String(), p.A.IPv4.Addr().String()} {
		args := append([]string{"tunnel", "-d", "xr0", "--peer", peer}, strings.Fields(flags)...)
		cmd := child(t, 0, args...)
		cmd.Stdout = &strings.Builder{}
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Do([]vethpair.Side{vethpair.A, vethpair.B}[i], cmd.Start); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		said := make([]byte, 4096)
		n, err := stderr.Read(said)
		if !strings.HasPrefix(string(said[:n]), "xroce: ready") {
			t.Fatalf("%v: says %q, %v", args, said[:n], err)
		}
		go io.Copy(io.Discard, stderr)
		tunnels[i] = cmd
	}
	return tunnels
}

// addAddresses gives the interface of a tunnel addresses of its side.
func addAddresses(t *testing.T, p *vethpair.Pair, side vethpair.Side) {
	t.Helper()
	n := 1 + int(side)
	err := p.Do(side, func() error {
		link, err := netlink.LinkByName("in0")
		if err != nil {
			return err
		}
		for _, form := range []string{"198.18.7.%d/24", "fd07::%d/64"} {
			text := fmt.Sprintf(form, n)
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
	if err != nil {
		t.Fatal(err)
	}
}

// bringBytes sends by TCP from B to an address of A.
func bringBytes(t *testing.T, p *vethpair.Pair, to netip.Addr) {
	t.Helper()
	const size = 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	var listener net.Listener
	err := p.Do(vethpair.A, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp",
			netip.AddrPortFrom(to, 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	sent := make(chan error, 1)
	go func() {
		sent <- p.Do(vethpair.B, func() error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write(make([]byte, size))
			return err
		})
	}()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatalf("%s: %v, and there %v", to, err, <-sent)
	}
	defer conn.Close()
	n, err := io.Copy(io.Discard, conn)
	if err != nil || n != size {
		t.Errorf("%s: %d of %d bytes, %v", to, n, size, err)
	}
	if err := <-sent; err != nil {
		t.Errorf("%s: %v", to, err)
	}
}

// TestRootTunnelInsideGone: a tunnel whose TAP or TUN interface is removed ends with an error that
// names it, also with several queues, each of which has a goroutine.
func TestRootTunnelInsideGone(t *testing.T) {
	p, _ := pair(t, vethpair.Options{})
	for _, flags := range []string{"--tap in0", "--tun in0 --over rc --inside-queues 2"} {
		tunnels := startTunnels(t, p, flags)
		for i, cmd := range tunnels {
			err := p.Do([]vethpair.Side{vethpair.A, vethpair.B}[i], func() error {
				link, err := netlink.LinkByName("in0")
				if err != nil {
					return err
				}
				return netlink.LinkDel(link)
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("%s: ended with %v", flags, err)
			}
		}
	}
}
