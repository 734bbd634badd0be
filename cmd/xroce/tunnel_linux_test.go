package main

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
)

// TestRootTunnel joins two hosts by each kind of tunnel: TCP, over IPv4 and IPv6, which needs
// ARP and neighbour discovery on a TAP, brings what was sent. SIGTERM ends both with 0 and
// leaves no interface.
func TestRootTunnel(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, _ := pair(t, vethpair.Options{})
	for _, tt := range []struct{ name, flags string }{
		{"eoib over ud", "--tap in0"},
		{"ipoib over rc", "--tun in0 --over rc"},
		{"raw over native", "--tap in0 --over native"},
		{"vnic over uc", "--tap in0 --over uc --format vnic --pkey 0x8005"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := joinOn(t, p, tt.flags)
			for _, to := range []string{insideIPv4, insideIPv6} {
				w.connect(to).bring(t, 1<<20)
			}
			for _, cmd := range w.tunnels {
				if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			for _, cmd := range w.tunnels {
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

// TestRootTunnelInsideGone: a tunnel whose TAP or TUN interface is removed ends with an error that
// names it, also with several queues, each of which has a goroutine.
func TestRootTunnelInsideGone(t *testing.T) {
	t.Parallel() // it waits most of the time
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
