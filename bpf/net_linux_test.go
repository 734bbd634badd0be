package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest/timeout"
)

// A network is two namespaces with a veth pair between them. The goroutine of
// the test is locked to a thread that is in the first, "ours". The namespaces
// have no name and vanish with the test.
type network struct {
	ours, peer netns.NsHandle
	dev        *netlink.Veth // our end
	peerLink   netlink.Link
	atPeer     *netlink.Handle
}

const (
	ourAddr4, peerAddr4 = "192.0.2.1", "192.0.2.2"
	ourAddr6, peerAddr6 = "2001:db8::1", "2001:db8::2"
)

// enterNamespace locks the goroutine to a thread and moves it to a new network
// namespace until the end of the test.
func enterNamespace(t *testing.T) netns.NsHandle {
	t.Helper()
	runtime.LockOSThread()
	host, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := netns.New()
	if err != nil {
		host.Close()
		t.Fatalf("new network namespace: %v", err)
	}
	t.Cleanup(func() {
		// A thread that cannot go back stays locked and dies with the goroutine.
		if err := netns.Set(host); err != nil {
			t.Error(err)
		} else {
			runtime.UnlockOSThread()
		}
		host.Close()
		ns.Close()
	})
	return ns
}

// newNetwork makes a network. tune may change the pair before it is made.
func newNetwork(t *testing.T, mtu int, tune func(*netlink.Veth)) *network {
	t.Helper()
	requireXDP(t)
	n := &network{ours: enterNamespace(t)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	n.peer, err = netns.New()
	must(err)
	t.Cleanup(func() { n.peer.Close() })
	must(netns.Set(n.ours))
	n.atPeer, err = netlink.NewHandleAt(n.peer, unix.NETLINK_ROUTE)
	must(err)
	t.Cleanup(n.atPeer.Close)

	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "ours0", mtu
	n.dev = netlink.NewVeth(attrs)
	n.dev.HardwareAddr = ownMAC[:]
	n.dev.PeerName, n.dev.PeerMTU = "peer0", uint32(mtu)
	n.dev.PeerNamespace = netlink.NsFd(n.peer)
	if tune != nil {
		tune(n.dev)
	}
	must(netlink.LinkAdd(n.dev))
	made, err := netlink.LinkByName("ours0")
	must(err)
	n.dev.Index = made.Attrs().Index
	n.peerLink, err = n.atPeer.LinkByName("peer0")
	must(err)
	for _, cidr := range []string{ourAddr4 + "/24", ourAddr6 + "/64"} {
		must(netlink.AddrAdd(n.dev, address(t, cidr)))
	}
	for _, cidr := range []string{peerAddr4 + "/24", peerAddr6 + "/64"} {
		must(n.atPeer.AddrAdd(n.peerLink, address(t, cidr)))
	}
	must(netlink.LinkSetUp(n.dev))
	must(n.atPeer.LinkSetUp(n.peerLink))
	// The kernel notes the carrier later, in a work queue (net/core/link_watch.c), and drops what
	// is sent before.
	for _, byName := range []func() (netlink.Link, error){
		func() (netlink.Link, error) { return netlink.LinkByName("ours0") },
		func() (netlink.Link, error) { return n.atPeer.LinkByName("peer0") },
	} {
		eventually(t, "an end is up", func() bool {
			l, err := byName()
			must(err)
			return l.Attrs().OperState == netlink.OperUp
		})
	}
	return n
}

// address parses an address to be used at once, without duplicate detection.
func address(t *testing.T, cidr string) *netlink.Addr {
	t.Helper()
	a, err := netlink.ParseAddr(cidr)
	if err != nil {
		t.Fatal(err)
	}
	if a.IP.To4() == nil {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// fromPeer runs f with the thread in the other namespace. Sockets and processes
// made by f stay there.
func (n *network) fromPeer(t *testing.T, f func()) {
	t.Helper()
	if err := netns.Set(n.peer); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := netns.Set(n.ours); err != nil {
			panic(err) // the rest of the test would run in the wrong place
		}
	}()
	f()
}

// attach attaches until the end of the test.
func (n *network) attach(t *testing.T, opts Options) *Program {
	t.Helper()
	p, err := Attach(n.dev.Index, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// xdpOf is what netlink says about the programs of our end: a second opinion.
func (n *network) xdpOf(t *testing.T) netlink.LinkXdp {
	t.Helper()
	l, err := netlink.LinkByIndex(n.dev.Index)
	if err != nil {
		t.Fatal(err)
	}
	if x := l.Attrs().Xdp; x != nil {
		return *x
	}
	return netlink.LinkXdp{}
}

// echo sends a datagram of size bytes from the peer to a port of ours and back again, through the
// kernel's sockets. On a machine that is busy the kernel may lose one: then there is another.
func (n *network) echo(t *testing.T, ourAddr string, port, size int) {
	t.Helper()
	to := net.JoinHostPort(ourAddr, fmt.Sprint(port))
	server, err := net.ListenPacket("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var client net.Conn
	n.fromPeer(t, func() { client, err = net.Dial("udp", to) })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for tries := 1; ; tries++ {
		err := echoOnce(server, client, size)
		if err == nil {
			return
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || tries == 4 {
			t.Fatalf("at %s, try %d: %v", to, tries, err)
		}
	}
}

// echoOnce sends a datagram from a client to a server and back.
func echoOnce(server net.PacketConn, client net.Conn, size int) error {
	deadline := time.Now().Add(timeout.Scaled(3 * time.Second))
	if err := errors.Join(server.SetDeadline(deadline), client.SetDeadline(deadline)); err != nil {
		return err
	}
	buf := make([]byte, size+1)
	if _, err := client.Write(make([]byte, size)); err != nil {
		return err
	}
	got, from, err := server.ReadFrom(buf)
	if err != nil || got != size {
		return fmt.Errorf("%d of %d bytes came there: %w", got, size, err)
	}
	if _, err := server.WriteTo(buf[:got], from); err != nil {
		return err
	}
	if got, err = client.Read(buf); err != nil || got != size {
		return fmt.Errorf("%d of %d bytes came back: %w", got, size, err)
	}
	return nil
}

// ping sends an ICMP echo request from the peer, each second until the reply comes: the kernel
// drops one whose neighbour is not found in time.
func (n *network) ping(t *testing.T, addr string) {
	t.Helper()
	network, request, reply := "ip4:icmp", byte(8), byte(0)
	if net.ParseIP(addr).To4() == nil {
		network, request, reply = "ip6:ipv6-icmp", 128, 129
	}
	var conn net.Conn
	var err error
	n.fromPeer(t, func() { conn, err = net.Dial(network, addr) })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	late := time.Now().Add(timeout.Scaled(10 * time.Second))

	msg := []byte{request, 0, 0, 0, 0x12, 0xb7, 0, 1} // identifier, sequence number
	binary.BigEndian.PutUint16(msg[2:], ^(uint16(request)<<8 + 0x12b7 + 1))
	buf := make([]byte, 256)
	for send := true; ; {
		if send {
			conn.SetDeadline(time.Now().Add(timeout.Scaled(time.Second)))
			if _, err := conn.Write(msg); err != nil { // the kernel redoes the sum of ICMPv6
				t.Fatal(err)
			}
		}
		got, err := conn.Read(buf)
		send = errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(late)
		if send {
			continue
		}
		if err != nil {
			t.Fatalf("ping %s: %v", addr, err)
		}
		if got < len(msg) {
			continue
		}
		icmp := buf[got-len(msg) : got] // an IPv4 header is before it
		if icmp[0] == reply && bytes.Equal(icmp[4:], msg[4:]) {
			return
		}
	}
}

// sendRaw sends a frame as it is from the peer's end.
func (n *network) sendRaw(t *testing.T, frame []byte) {
	t.Helper()
	n.fromPeer(t, func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		to := &unix.SockaddrLinklayer{Ifindex: n.peerLink.Attrs().Index}
		if err := unix.Sendto(fd, frame, 0, to); err != nil {
			t.Fatal(err)
		}
	})
}

// foreign loads a program that passes everything.
func foreign(t *testing.T) *ebpf.Program {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "stranger",
		Type:         ebpf.XDP,
		AttachType:   ebpf.AttachXDP,
		License:      "MIT",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, int32(Pass)), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	return prog
}

// linkForeign attaches the stranger by bpf_link until the end of the test.
func (n *network) linkForeign(t *testing.T, flags link.XDPAttachFlags) {
	t.Helper()
	l, err := link.AttachXDP(link.XDPOptions{
		Program: foreign(t), Interface: n.dev.Index, Flags: flags,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

// eventually waits until f is true. The deadline is for broken code only.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	end := time.Now().Add(timeout.Scaled(10 * time.Second))
	for ; !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}
