package msg_test

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/net/nettest"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

const streamPort = 7471

// A host is an endpoint with its address.
type host struct {
	*msg.Endpoint
	addr    netip.Addr
	dev     *engine.Device
	manager *cm.Manager
}

// newNetwork makes two hosts on a simulated wire.
func newNetwork(t testing.TB, o msg.Options) (*sim.Network, [2]*host) {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	var hosts [2]*host
	for i := range hosts {
		hosts[i] = newHost(t, network, byte(1+i), quick, o)
	}
	return network, hosts
}

// newVeth makes two hosts in namespaces of the kernel.
func newVeth(t testing.TB) [2]*host {
	t.Helper()
	_, hosts := newVethPair(t, vethpair.Options{})
	return hosts
}

func newVethPair(t testing.TB, o vethpair.Options) (*vethpair.Pair, [2]*host) {
	t.Helper()
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(o)
	must(t, err)
	t.Cleanup(func() { must(t, pair.Close()) })
	var hosts [2]*host
	for i, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		h := &host{addr: pair.End(side).IPv4.Addr()}
		var dev *engine.Device
		must(t, pair.Do(side, func() (err error) {
			dev, err = engine.Open(vethpair.IfName, engine.Options{})
			return err
		}))
		t.Cleanup(func() { must(t, dev.Close()) })
		manager, err := cm.Open(dev, quick)
		must(t, err)
		t.Cleanup(func() { must(t, manager.Close()) })
		h.dev, h.manager = dev, manager
		h.Endpoint, err = msg.Open(dev, manager, msg.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, h.Close()) })
		hosts[i] = h
	}
	return pair, hosts
}

// onBoth runs a test on a simulated wire and between two namespaces.
func onBoth(t *testing.T, f func(t *testing.T, hosts [2]*host)) {
	t.Run("simulated", func(t *testing.T) {
		_, hosts := newNetwork(t, msg.Options{})
		f(t, hosts)
	})
	t.Run("veth", func(t *testing.T) { f(t, newVeth(t)) })
}

// listen takes streams at the second host.
func listen(t testing.TB, hosts [2]*host) *msg.StreamListener {
	t.Helper()
	l, err := hosts[1].ListenStream(netip.AddrPortFrom(hosts[1].addr, streamPort))
	must(t, err)
	return l
}

// newStreams makes two endpoints on a wire that are connected by a stream.
func newStreams(
	t testing.TB, f sim.Faults, o msg.Options,
) (a, b *host, sa, sb *msg.Stream) {
	t.Helper()
	network, hosts := newNetwork(t, o)
	l := listen(t, hosts)
	sa, sb = connectStreams(t, hosts[0].Endpoint, l)
	must(t, l.Close())
	must(t, network.SetFaults(f))
	return hosts[0], hosts[1], sa, sb
}

// connectStreams connects an endpoint with a listener and returns both ends.
func connectStreams(t testing.TB, a *msg.Endpoint, l *msg.StreamListener) (sa, sb *msg.Stream) {
	t.Helper()
	type accepted struct {
		net.Conn
		error
	}
	done := make(chan accepted, 1)
	go func() {
		c, err := l.Accept()
		done <- accepted{c, err}
	}()
	sa, err := a.DialStream(within(t), netip.AddrPort(l.Addr().(msg.Addr)))
	must(t, err)
	other := <-done
	must(t, other.error)
	return sa, other.Conn.(*msg.Stream)
}

// TestConn is what golang.org/x/net demands of a net.Conn.
func TestConn(t *testing.T) {
	onBoth(t, func(t *testing.T, hosts [2]*host) {
		l := listen(t, hosts)
		t.Cleanup(func() { must(t, l.Close()) })
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			sa, sb := connectStreams(t, hosts[0].Endpoint, l)
			return sa, sb, func() {
				_ = sa.Close()
				_ = sb.Close()
			}, nil
		})
	})
}

// TestStreamAddrs: both ends name the same two addresses.
func TestStreamAddrs(t *testing.T) {
	a, b, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
	if sa.LocalAddr() != sb.RemoteAddr() || sa.RemoteAddr() != sb.LocalAddr() {
		t.Errorf("%v to %v, %v to %v", sa.LocalAddr(), sa.RemoteAddr(), sb.LocalAddr(),
			sb.RemoteAddr())
	}
	if got, want := sa.RemoteAddr().String(), b.addr.String()+":7471"; got != want {
		t.Errorf("%v, not %v", got, want)
	}
	if got := sb.RemoteAddr().(msg.Addr); netip.AddrPort(got).Addr() != a.addr {
		t.Errorf("%v", got)
	}
	if got := sa.LocalAddr().Network(); got != "roce" {
		t.Error(got)
	}
}

// TestReadFromWriteTo copies through both, in pieces of any length.
func TestReadFromWriteTo(t *testing.T) {
	_, _, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
	data := numbers(1 << 20)
	for name, r := range map[string]io.Reader{
		"whole":   bytes.NewReader(data),
		"halves":  iotest.HalfReader(bytes.NewReader(data)),
		"last":    iotest.DataErrReader(bytes.NewReader(data)),
		"nothing": bytes.NewReader(nil),
		"bytes":   iotest.OneByteReader(bytes.NewReader(data[:3000])),
	} {
		sent := make(chan int64, 1)
		go func() {
			n, err := sa.ReadFrom(r)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			sent <- n
		}()
		var got bytes.Buffer
		want := map[string]int{"nothing": 0, "bytes": 3000}
		n, ok := want[name]
		if !ok {
			n = len(data)
		}
		_, err := io.CopyN(&got, sb, int64(n))
		must(t, err)
		if m := <-sent; int(m) != n || !bytes.Equal(got.Bytes(), data[:n]) {
			t.Errorf("%s: %d bytes are sent, of %d", name, m, n)
		}
	}
	go func() {
		_, err := sa.Write(data)
		if err := sa.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	var got bytes.Buffer
	n, err := sb.WriteTo(&got)
	must(t, err)
	if int(n) != len(data) || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes of %d", n, len(data))
	}
}

// TestReadFromOfBadReaders: what the reader says is returned, and the stream is as good as
// before.
func TestReadFromOfBadReaders(t *testing.T) {
	_, _, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
	for name, r := range map[string]io.Reader{
		"fails":   iotest.ErrReader(errBad),
		"timeout": iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("abc"))),
		"idle":    reader(func([]byte) (int, error) { return 0, nil }),
		"more":    reader(func(p []byte) (int, error) { return len(p) + 1, nil }),
		"less":    reader(func([]byte) (int, error) { return -1, nil }),
	} {
		n, err := sa.ReadFrom(r)
		if err == nil || name == "fails" && err != errBad ||
			name == "timeout" && (n != 1 || err != iotest.ErrTimeout) ||
			name == "idle" && err != io.ErrNoProgress {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = sa.ReadFrom(reader(func([]byte) (int, error) { panic("bad") }))
	}()
	_, err := sa.Write([]byte("bc"))
	must(t, err)
	for name, w := range map[string]writer{
		"fails": func([]byte) (int, error) { return 0, errBad },
		"short": func([]byte) (int, error) { return 0, nil },
		"more":  func(p []byte) (int, error) { return len(p) + 1, nil },
		"less":  func([]byte) (int, error) { return -1, nil },
	} {
		if n, err := sb.WriteTo(w); n != 0 || err == nil {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = sb.WriteTo(writer(func([]byte) (int, error) { panic("bad") }))
	}()
	got := make([]byte, 3)
	_, err = io.ReadFull(sb, got)
	must(t, err)
	if string(got) != "abc" {
		t.Errorf("%q", got)
	}
}

type (
	reader func([]byte) (int, error)
	writer func([]byte) (int, error)
)

func (f reader) Read(p []byte) (int, error)  { return f(p) }
func (f writer) Write(p []byte) (int, error) { return f(p) }
