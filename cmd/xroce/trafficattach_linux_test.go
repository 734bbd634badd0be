package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// This file is about the XDP program of the commands that take test frames: where it runs, and what
// it takes.

// refuseNative has the interface of namespace A refuse XDP programs in its driver, as a veth device
// does whose peer has more transmit queues than it has receive queues.
func refuseNative(t *testing.T, p *vethpair.Pair) {
	t.Helper()
	err := p.Do(vethpair.A, func() error {
		tool, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		_, err = tool.SetChannels(vethpair.IfName, ethtool.Channels{RxCount: 1, TxCount: 2})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRootTrafficGenericIsTold: who gets the slow mode of XDP although it was not asked for is
// warned, and reports say where the program ran, and why.
func TestRootTrafficGenericIsTold(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{Queues: 2})
	refuseNative(t, p)
	for _, line := range []string{
		"sink -d xr0 --duration 1ms",
		"sink -d xr0 --duration 1ms --xdp-mode generic",
		"fuzz -d xr0 HOST -n 1 --wait 0s",
		"fuzz -d xr0 HOST -n 1 --wait 0s --xdp-mode generic",
		"pktgen -d xr0 --stateful --dest-qp 5 --to HOST -n 1 --ack-timeout 1ms --retry-count 0",
	} {
		code := exitOK
		if strings.HasPrefix(line, "pktgen") {
			code = exitFailure // there is no such queue pair
		}
		args := strings.Fields(strings.ReplaceAll(line, "HOST", p.B.IPv4.Addr().String()))
		i := in(vethpair.A).run(t, append(args, "--json")...)
		i.exited(t, code)
		var r struct {
			Attach  string `json:"attach"`
			Because string `json:"attach_because"`
		}
		if err := json.Unmarshal([]byte(i.stdout), &r); err != nil {
			t.Errorf("%s: %v: %s", line, err, i.stdout)
		}
		asked := strings.Contains(line, "generic")
		if r.Attach != "generic" || strings.Contains(r.Because, "more transmit queues") == asked ||
			strings.Contains(i.stderr, "level=WARN") == asked {
			t.Errorf("%s: %+v, %s", line, r, i.stderr)
		}
		if !asked {
			contains(t, i.stderr, "generic mode, which is slower", "device=xr0",
				"more transmit queues")
		}
		i = in(vethpair.A).run(t, args...)
		i.exited(t, code)
		contains(t, i.stdout, "the XDP program ran in generic mode\n")
	}
	native := in(vethpair.B).run(t, "sink", "-d", "xr0", "--duration", "1ms", "--json")
	native.exited(t, exitOK)
	contains(t, native.stdout, `"attach": "native"`)
	if strings.Contains(native.stdout, "attach_because") || !native.quiet() {
		t.Errorf("%s%s", native.stdout, native.stderr)
	}
}

// TestRootTrafficGenericZeroCopy: an interface gives a program in generic mode nothing that its
// driver took for zero-copy, so that is not even tried.
func TestRootTrafficGenericZeroCopy(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	for _, line := range []string{"sink -d xr0", "fuzz -d xr0 HOST"} {
		args := strings.Fields(strings.ReplaceAll(line, "HOST", p.B.IPv4.Addr().String()))
		i := in(vethpair.A).run(t, append(args, "--xdp-mode", "generic", "--xsk-mode",
			"zero-copy")...)
		i.exited(t, exitUnsupported)
		contains(t, i.stderr, "zero-copy needs the XDP program in native mode")
	}
}

// TestRootSinkLeavesV1: frames of RoCE v1 go on to the kernel unless the sink is told to take them.
func TestRootSinkLeavesV1(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{NoAddrs: true})
	const roceV1, nobodys = 0x8915, 0x88b7
	heard, from := packetSocketOf(t, p, vethpair.B), packetSocketOf(t, p, vethpair.A)
	for _, c := range []struct {
		args []string
		left bool
	}{{nil, true}, {[]string{"--ethertype", "0x8915"}, false}} {
		sink := in(vethpair.B).start(t, append([]string{"sink", "-d", "xr0", "--keep"},
			c.args...)...)
		sink.awaitReady(t)
		// There is one queue: when the second frame has come, the first has, too.
		for _, etherType := range []uint16{roceV1, nobodys} {
			frame := append([]byte("\xff\xff\xff\xff\xff\xff"), p.A.MAC...)
			frame = append(frame, byte(etherType>>8), byte(etherType&0xff))
			frame = append(frame, make([]byte, 60)...)
			to := &unix.SockaddrLinklayer{Ifindex: p.A.Ifindex}
			if err := unix.Sendto(from, frame, 0, to); err != nil {
				t.Fatal(err)
			}
		}
		left := false
		for etherType := uint16(0); etherType != nobodys; {
			var b [128]byte
			n, err := unix.Read(heard, b[:])
			if errors.Is(err, unix.EINTR) { // by the runtime of Go
				continue
			}
			if err != nil || n < 14 {
				t.Fatalf("%d bytes, %v", n, err)
			}
			etherType = uint16(b[12])<<8 | uint16(b[13])
			left = left || etherType == roceV1
		}
		if left != c.left {
			t.Errorf("sink %q: the kernel got a frame of RoCE v1: %t", c.args, left)
		}
		sink.cancel()
		sink.wait(t).exited(t, exitOK)
	}
}

// packetSocketOf is a socket that has all frames that come to the kernel of an end, and sends some.
func packetSocketOf(t *testing.T, p *vethpair.Pair, side vethpair.Side) (fd int) {
	t.Helper()
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	err := p.Do(side, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	patience := unix.NsecToTimeval(timeout.Scaled(10 * time.Second).Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		t.Fatal(err)
	}
	return fd
}
