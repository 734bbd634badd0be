package main

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
)

// servers are the command lines of all that wait for somebody, on device xr0.
func servers(t *testing.T) [][]string {
	t.Helper()
	return [][]string{
		{"serve", "-d", "xr0", "--insecure", "--dir", t.TempDir()},
		{"pingpong", "-d", "xr0", "-p", "0"},
		{"pingpong", "-d", "xr0", "-p", "0", "-e"},
		{"perf", "send-bw", "-d", "xr0", "-p", "0"},
		{"perf", "read-lat", "-d", "xr0", "-R"},
		{"rping", "-d", "xr0", "-s"},
		{"rping", "-d", "xr0", "-s", "-P"},
		{"ucmatose", "-d", "xr0"},
		{"udaddy", "-d", "xr0"},
		{"rdma-server", "-d", "xr0"},
		{"msg", "stream", "-d", "xr0"},
		{"check", "xr0", "--serve"},
		{"sink", "-d", "xr0"},
		{"tunnel", "-d", "xr0", "--tap", "in0", "--peer", "198.18.7.9"},
		{"tunnel", "-d", "xr0", "--tun", "in0", "--peer", "198.18.7.9", "--over", "rc"},
	}
}

// TestRootInterfaceRemoved deletes the interface under each server that waits: it says
// so and fails.
func TestRootInterfaceRemoved(t *testing.T) {
	for _, args := range servers(t) {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			p, in := pair(t, vethpair.Options{})
			server := in(vethpair.A).start(t, args...)
			server.awaitReady(t)
			err := p.Do(vethpair.A, func() error {
				link, err := netlink.LinkByName(vethpair.IfName)
				if err != nil {
					return err
				}
				return netlink.LinkDel(link)
			})
			if err != nil {
				t.Fatal(err)
			}
			if server.wait(t); server.code != exitFailure {
				t.Errorf("code %d", server.code)
			}
			contains(t, server.stderr, "interface xr0 was removed")
		})
	}
}

// TestRootTerminated sends SIGTERM to servers that wait: they end as they should.
func TestRootTerminated(t *testing.T) {
	p, _ := pair(t, vethpair.Options{})
	for _, args := range [][]string{
		{"serve", "-d", "xr0", "--insecure", "--dir", t.TempDir()},
		{"rping", "-d", "xr0", "-s"},
	} {
		cmd := child(t, 0, args...)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Do(vethpair.A, cmd.Start); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stderr).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "xroce: ready") {
			t.Errorf("%v: says %q, %v", args, line, err)
		}
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestRootGenericIsTold: who gets the slow mode of XDP although it was not asked for is
// warned, and devinfo shows it.
func TestRootGenericIsTold(t *testing.T) {
	p, in := pair(t, vethpair.Options{Queues: 2})
	refuseNative(t, p)
	for mode, told := range map[string]bool{"auto": true, "generic": false} {
		server := in(vethpair.A).start(t, "rping", "-d", "xr0", "-s", "--xdp-mode", mode)
		server.awaitReady(t)
		info := in(vethpair.A).run(t, "devinfo", "-d", "xr0")
		contains(t, info.stdout, "xdp_program:", "generic mode")
		server.cancel()
		server.exited(t, exitOK)
		if strings.Contains(server.stderr, "level=WARN") != told {
			t.Errorf("--xdp-mode %s says %s", mode, server.stderr)
		}
		if told {
			contains(t, server.stderr, "generic mode, which is slower", "device=xr0",
				"more transmit queues")
		}
	}
}

// TestRootProgramDetached detaches the XDP program of a server, as bpftool does: it says so, and
// attaches it again if it is to.
func TestRootProgramDetached(t *testing.T) {
	p, in := pair(t, vethpair.Options{})
	for _, flags := range [][]string{nil, {"--reattach"}} {
		server := in(vethpair.A).start(t, append([]string{"rping", "-d", "xr0", "-s"}, flags...)...)
		server.awaitReady(t)
		if err := p.Do(vethpair.A, detachProgram); err != nil {
			t.Fatal(err)
		}
		words := "nothing is received any more"
		if flags != nil {
			words = "which is attached again"
		}
		server.awaitStderr(t, words)
		server.cancel()
		server.exited(t, exitOK)
		contains(t, server.stderr, "somebody detached the XDP program", "device=xr0")
	}
}

// detachProgram detaches the XDP program of the thread's xr0.
func detachProgram() error {
	l, err := netlink.LinkByName(vethpair.IfName)
	if err != nil {
		return err
	}
	var all link.Iterator
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err == nil && uint32(info.Program) == l.Attrs().Xdp.ProgId {
			return all.Link.Detach()
		}
	}
	return errors.Join(errors.New("no link attaches a program"), all.Err())
}
