package vethpair_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// exists reports whether a namespace is there under its name.
func exists(name string) bool {
	_, err := os.Stat("/run/netns/" + name)
	return err == nil
}

func TestPairTalks(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	further, err := p.AddWire(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if further[1].Name != "xr1" || further[1].Namespace != p.B.Namespace {
		t.Errorf("a further wire: %+v", further)
	}
	for _, network := range []struct{ name, a, b string }{
		{"udp4", p.A.IPv4.Addr().String(), p.B.IPv4.Addr().String()},
		{"udp6", p.A.IPv6.Addr().String(), p.B.IPv6.Addr().String()},
		{"udp4", further[0].IPv4.Addr().String(), further[1].IPv4.Addr().String()},
	} {
		var server net.PacketConn
		var client net.Conn
		p.Do(xsktest.B, func() {
			var err error
			server, err = net.ListenPacket(network.name, net.JoinHostPort(network.b, "0"))
			if err != nil {
				t.Fatal(err)
			}
		})
		defer server.Close()
		p.Do(xsktest.A, func() {
			c, err := net.Dial(network.name, server.LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			client = c
		})
		defer client.Close()
		b := make([]byte, 64)
		n, from, err := 0, net.Addr(nil), os.ErrDeadlineExceeded
		for tries := 0; tries < 4 && errors.Is(err, os.ErrDeadlineExceeded); tries++ {
			// The kernel of a machine that is busy may lose one.
			if _, err := client.Write([]byte("over the wire")); err != nil {
				t.Fatal(err)
			}
			late := time.Now().Add(timeout.Scaled(3 * time.Second))
			if err := server.SetDeadline(late); err != nil {
				t.Fatal(err)
			}
			n, from, err = server.ReadFrom(b)
		}
		if err != nil || string(b[:n]) != "over the wire" {
			t.Fatalf("%s: %q, %v", network.name, b[:n], err)
		}
		if host, _, _ := net.SplitHostPort(from.String()); host != network.a {
			t.Errorf("%s: from %s, want %s", network.name, host, network.a)
		}
	}
}

// TestPairsAreFound: who asks for the IPv6 address of an end is answered as soon as there is a
// pair, also while others come and go and the kernel is late.
func TestPairsAreFound(t *testing.T) {
	xsktest.NeedRoot(t)
	var g errgroup.Group
	for range 16 {
		g.Go(func() error {
			for range 8 {
				p, err := vethpair.New(vethpair.Options{})
				if err != nil {
					return err
				}
				found := func(s vethpair.Side) error {
					e := p.End(s)
					return p.Do(s, func() error { return vethpair.Found(e.Name, e.IPv6.Addr()) })
				}
				err = errors.Join(found(vethpair.A), found(vethpair.B), p.Close())
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestPairOptions(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{MTU: 4200, Queues: 2, Threaded: true, NoAddrs: true})
	q := xsktest.NewPair(t, xsktest.Options{NoQdisc: true})
	if p.A.Namespace == q.A.Namespace || p.A.IPv4.IsValid() || q.A.IPv4 == p.A.IPv4 {
		t.Errorf("pairs are not apart: %+v, %+v", p.A, q.A)
	}
	for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		p.Do(side, func() {
			l, err := netlink.LinkByName(vethpair.IfName)
			if err != nil {
				t.Fatal(err)
			}
			a := l.Attrs()
			if a.MTU != 4200 || a.NumRxQueues != 2 || a.NumTxQueues != 2 ||
				a.Index != p.End(side).Ifindex ||
				a.HardwareAddr.String() != p.End(side).MAC.String() {
				t.Errorf("interface %+v, want MTU 4200 and 2 queues", a)
			}
			if k := qdisc(t, l); k != "pfifo" {
				t.Errorf("queueing discipline %q, want pfifo", k)
			}
			et, err := ethtool.NewEthtool()
			if err != nil {
				t.Fatal(err)
			}
			defer et.Close()
			f, err := et.Features(vethpair.IfName)
			if err != nil || f["tx-checksum-ip-generic"] {
				t.Errorf("checksum offload is on (%v)", err)
			}
			ch, err := et.GetChannels(vethpair.IfName)
			if err != nil || ch.CombinedCount != 2 && ch.RxCount != 2 {
				t.Errorf("channels %+v, want 2 (%v)", ch, err)
			}
			if !threadsOf(vethpair.IfName) {
				t.Error("no thread for the interface's NAPI")
			}
		})
	}
	q.Do(vethpair.A, func() {
		l, err := netlink.LinkByName(vethpair.IfName)
		if err != nil {
			t.Fatal(err)
		}
		if k := qdisc(t, l); k != "noqueue" {
			t.Errorf("queueing discipline %q, want noqueue", k)
		}
	})
}

// qdisc returns the kind of an interface's root queueing discipline.
func qdisc(t *testing.T, l netlink.Link) string {
	t.Helper()
	qs, err := netlink.QdiscList(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range qs {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q.Type()
		}
	}
	return ""
}

// threadsOf reports whether the kernel runs a NAPI thread for an interface name.
func threadsOf(name string) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if strings.HasPrefix(string(comm), "napi/"+name) {
			return true
		}
	}
	return false
}

func TestPairClose(t *testing.T) {
	xsktest.NeedRoot(t)
	p, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !exists(p.A.Namespace) || !exists(p.B.Namespace) {
		t.Errorf("no namespaces %s and %s", p.A.Namespace, p.B.Namespace)
	}
	swept, err := vethpair.Sweep()
	if err != nil || strings.Contains(fmt.Sprint(swept), p.A.Namespace) {
		t.Errorf("sweep took a living pair: %v, %v", swept, err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if exists(p.A.Namespace) || exists(p.B.Namespace) {
		t.Error("the namespaces are still there")
	}
	if err := p.Do(vethpair.A, func() error { return nil }); err == nil {
		t.Error("a closed pair lets people in")
	}
}

func TestPairFails(t *testing.T) {
	xsktest.NeedRoot(t)
	before, _ := os.ReadDir("/run/netns")
	if p, err := vethpair.New(vethpair.Options{MTU: 1 << 20}); err == nil {
		t.Errorf("a pair with an MTU of 1 MiB: %+v", p)
		p.Close()
	}
	after, _ := os.ReadDir("/run/netns")
	for _, e := range after {
		if strings.HasPrefix(e.Name(), fmt.Sprintf("xroce-%d-", os.Getpid())) {
			t.Errorf("%s is left (before: %v)", e.Name(), before)
		}
	}
}

// TestSweep lets a child make a pair and die.
func TestSweep(t *testing.T) {
	xsktest.NeedRoot(t)
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), "VETHPAIR_TEST_LEAVE=1")
	out, err := child.Output()
	name := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(name, "xroce-") {
		t.Fatalf("child left %q, %v", name, err)
	}
	// Tests of other packages sweep too, so it may be gone before we come to it.
	if _, err := vethpair.Sweep(); err != nil {
		t.Fatal(err)
	}
	if exists(name) {
		t.Errorf("%s is still there", name)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("VETHPAIR_TEST_LEAVE") != "" {
		p, err := vethpair.New(vethpair.Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.A.Namespace)
		os.Exit(0)
	}
	if os.Getenv("VETHPAIR_TEST_RUN") != "" {
		if err := goBesideOthers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestDropTwice: a wire that is gone between the look at it and its end is no error. So it
// happens to Close of a pair whose wires lead to a namespace that ends.
func TestDropTwice(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{NoAddrs: true})
	p.Do(xsktest.A, func() {
		h, err := netlink.NewHandle()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		l, err := h.LinkByName(p.A.Name)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := vethpair.Drop(h, l); err != nil {
				t.Error(err)
			}
		}
	})
}
