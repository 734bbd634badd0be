package engine_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"xroce/encap"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/clock"
	"xroce/roce/wire"
	"xroce/xsk"
)

// openNative opens a native port for as long as the test runs.
func openNative(t *testing.T, d *engine.Device, c engine.NativeConfig) *engine.NativePort {
	t.Helper()
	p, err := d.OpenNative(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

// route makes a route of a format.
func route(
	t *testing.T, p *engine.NativePort, to [6]byte, f encap.Format, tags ...wire.Tag,
) *engine.NativeRoute {
	t.Helper()
	r, err := p.NewRoute(to, encap.Template{Format: f, SL: 3, HopLimit: 64}, tags...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// nativeDatagram makes a datagram of a kind and a length.
func nativeDatagram(k encap.Kind, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	switch k {
	case encap.IPv4:
		b[0], b[2], b[3], b[9] = 0x45, byte(n>>8), byte(n), 6
	case encap.IPv6:
		n -= 40
		b[0], b[4], b[5], b[6] = 0x60, byte(n>>8), byte(n), 6
	default:
		copy(b, "\x02\x00\x00\x00\x00\x77\x02\x00\x00\x00\x00\x78\x90\x00")
	}
	return b
}

// customer is an 802.1Q tag.
func customer(tci uint16) wire.Tag { return wire.Tag{TPID: wire.TPIDCustomer, TCI: tci} }

// receiveNative polls until a datagram comes.
func (w *world) receiveNative(p *engine.NativePort) engine.NativeDatagram {
	w.t.Helper()
	var list [1]engine.NativeDatagram
	w.run(func() bool { return p.Poll(list[:]) == 1 })
	return list[0]
}

// TestNativeDatagrams sends datagrams of each native format both ways, with as many VLAN tags
// as there may be.
func TestNativeDatagrams(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a := openNative(t, w.devs[0], engine.NativeConfig{})
		b := openNative(t, w.devs[1], engine.NativeConfig{})
		for _, c := range []struct {
			format encap.Format
			kind   encap.Kind
			sizes  []int
			tags   []wire.Tag
		}{
			{encap.Raw, encap.Ethernet, []int{14, 15, 16, 17, 60, 1514, 4100, 4184}, nil},
			{encap.Raw, encap.IPv4, []int{20, 21, 1501}, []wire.Tag{customer(0x6005)}},
			{encap.RawIPv6, encap.IPv6, []int{40, 43, 1500}, []wire.Tag{
				{TPID: wire.TPIDService, TCI: 7}, customer(0xe008),
			}},
			{encap.RawGRH, encap.Ethernet, []int{14, 1001}, []wire.Tag{customer(7), customer(8)}},
		} {
			for _, dir := range []struct {
				from, to *engine.NativePort
				devs     [2]*engine.Device
			}{{a, b, [2]*engine.Device(w.devs)}, {b, a, [2]*engine.Device{w.devs[1], w.devs[0]}}} {
				from, to := dir.devs[0].Port().MAC, dir.devs[1].Port().MAC
				r := route(t, dir.from, to, c.format, c.tags...)
				for _, n := range c.sizes {
					sent := nativeDatagram(c.kind, n)
					must(t, dir.from.Send(r, c.kind, sent))
					d := w.receiveNative(dir.to)
					if d.Format != c.format || d.Kind != c.kind || !d.Segment.Whole() ||
						d.From != from || d.To != to || d.LRH.SL != 3 ||
						!slices.Equal(c.tags, d.Tags[:len(c.tags)]) {
						t.Errorf("%s of %d bytes: %s %s from %x to %x with %+v, %s", c.format, n,
							d.Format, d.Kind, d.From, d.To, d.Tags, d.LRH)
					}
					if !bytes.Equal(d.Datagram, sent) || d.Tail != nil {
						t.Errorf("%s of %d bytes: data differs", c.format, n)
					}
				}
			}
		}
		for _, d := range w.devs {
			if n := counterOf(t, d, "native_rx_packets"); n != 16 {
				t.Errorf("%d packets counted", n)
			}
		}
	})
}

// TestNativeSegments: a frame that one packet has no room for goes in segments.
func TestNativeSegments(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a := openNative(t, w.devs[0], engine.NativeConfig{})
		b := openNative(t, w.devs[1], engine.NativeConfig{Datagrams: 32})
		r := route(t, a, w.devs[1].Port().MAC, encap.Raw)
		r.Template.Room = 600
		reassembler, err := encap.NewReassembler(encap.ReassemblerConfig{})
		must(t, err)
		for _, n := range []int{600, 1514, 9216} {
			sent := nativeDatagram(encap.Ethernet, n)
			must(t, a.Send(r, encap.Ethernet, sent))
			var frame []byte
			for segments := 0; frame == nil; segments++ {
				d := w.receiveNative(b)
				if d.Segment.Whole() || segments > 32 {
					t.Fatalf("%+v after %d segments", d.Segment, segments)
				}
				f, reason := reassembler.Add(clock.Second, 1, &d.Packet)
				if reason != encap.OK {
					t.Fatal(reason)
				}
				frame = f
			}
			if !bytes.Equal(frame, sent) {
				t.Errorf("%d bytes: data differs", n)
			}
		}
	})
}

// TestNativeBounds: what comes when too many wait is dropped and counted, and what Poll has
// handed out stays as it is until the next.
func TestNativeBounds(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a := openNative(t, w.devs[0], engine.NativeConfig{})
		b := openNative(t, w.devs[1], engine.NativeConfig{Datagrams: 3})
		r := route(t, a, w.devs[1].Port().MAC, encap.Raw)
		batch := func(sizes ...int) {
			list := make([]engine.NativeSend, len(sizes))
			for i, n := range sizes {
				list[i] = engine.NativeSend{
					To: r, Kind: encap.Ethernet, Datagram: nativeDatagram(encap.Ethernet, n),
				}
			}
			if n, err := a.SendBatch(list); n != len(sizes) || err != nil {
				t.Fatalf("%d sent (%v)", n, err)
			}
		}
		count := func(name string, n uint64) {
			w.run(func() bool { return counterOf(t, w.devs[1], name) == n })
		}
		batch(100, 101, 102, 103)
		count("native_out_of_buffer", 1)
		var list [2]engine.NativeDatagram
		if n := b.Poll(list[:]); n != 2 || list[0].Len() != 100 || list[1].Len() != 101 {
			t.Errorf("%d datagrams", n)
		}
		batch(104) // two are held, one waits
		count("native_out_of_buffer", 2)
		for i, n := range []int{100, 101} {
			if !bytes.Equal(list[i].Datagram, nativeDatagram(encap.Ethernet, n)) {
				t.Errorf("datagram %d changed", i)
			}
		}
		if n := b.Poll(list[:]); n != 1 || list[0].Len() != 102 {
			t.Errorf("%d datagrams", n)
		}
		batch(105, 106)
		count("native_rx_packets", 5)
		if n := b.Poll(list[:]); n != 2 || list[0].Len() != 105 || list[1].Len() != 106 {
			t.Errorf("%d datagrams", n)
		}
		if n := b.Poll(list[:]); n != 0 {
			t.Errorf("%d datagrams that nobody sent", n)
		}
	})
}

// A linkOfOnce is a link that was opened with an MTU of 1500, and takes longer frames by now.
type linkOfOnce struct{ xsk.Link }

func (l linkOfOnce) Info() xsk.Info {
	info := l.Link.Info()
	info.MaxFrame = 1518
	return info
}

// TestNativeAboveTheMTUOfOnce: what comes is whole when the MTU was raised since the port was
// opened, of every format.
func TestNativeAboveTheMTUOfOnce(t *testing.T) {
	network := newNetwork(t, 1, engine.NewSystemClock(), sim.Faults{})
	var devs []*engine.Device
	var ports []*engine.NativePort
	for i := range byte(2) {
		port, err := network.NewPort(sim.PortConfig{
			MAC: [6]byte{2, 0, 0, 0, 0, i + 1}, MTU: 4400,
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, i + 1})},
		})
		must(t, err)
		link := xsk.Link(port)
		if i == 1 {
			link = linkOfOnce{port}
		}
		d, err := engine.OpenLink(link, port, engine.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, d.Close()) })
		devs, ports = append(devs, d), append(ports, openNative(t, d, engine.NativeConfig{}))
	}
	var list [1]engine.NativeDatagram
	for _, f := range []encap.Format{encap.Raw, encap.RawGRH, encap.RawIPv6} {
		r := route(t, ports[0], devs[1].Port().MAC, f)
		kind := f.Spec().Codes[0].Kind
		for _, n := range []int{1400, 1600, 3000, r.Template.Max(kind)} {
			sent := nativeDatagram(kind, n)
			must(t, ports[0].Send(r, kind, sent))
			for ports[1].Poll(list[:]) == 0 {
				must(t, ports[1].Wait(t.Context()))
			}
			if !bytes.Equal(list[0].Datagram, sent) {
				t.Errorf("%s: %d bytes of %d came, or others", f, list[0].Len(), n)
			}
		}
	}
}

// TestNativeBatch sends many at once, as nothing holds back a sender: all of it arrives, in
// order. On a veth pair the kernel may drop some of so many.
func TestNativeBatch(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a := openNative(t, w.devs[0], engine.NativeConfig{})
	b := openNative(t, w.devs[1], engine.NativeConfig{Datagrams: 1 << 11})
	r := route(t, a, w.devs[1].Port().MAC, encap.Raw)
	list := make([]engine.NativeSend, 1500)
	for i := range list {
		list[i] = engine.NativeSend{
			To: r, Kind: encap.Ethernet, Datagram: nativeDatagram(encap.Ethernet, 60+i%100),
		}
	}
	var came [64]engine.NativeDatagram
	sent, received := 0, 0
	w.run(func() bool {
		n, err := a.SendBatch(list[sent:])
		if err != nil && !errors.Is(err, roce.ErrQueueFull) {
			t.Fatal(err)
		}
		sent += n
		n = b.Poll(came[:])
		for i := range n {
			if came[i].Len() != 60+(received+i)%100 {
				t.Fatalf("%d bytes come as number %d", came[i].Len(), received+i)
			}
		}
		received += n
		return received == len(list)
	})
}

// TestNativeQueueFull: a datagram goes with all of its segments or not at all.
func TestNativeQueueFull(t *testing.T) {
	clock := &sim.VirtualClock{}
	port, err := newNetwork(t, 1, clock, sim.Faults{}).NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 1500, TxFrames: 2,
	})
	must(t, err)
	d, err := engine.OpenLink(port, port, engine.Options{Clock: clock, Direct: true})
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	p := openNative(t, d, engine.NativeConfig{})
	r := route(t, p, [6]byte{2, 0, 0, 0, 0, 2}, encap.Raw)
	list := []engine.NativeSend{
		{To: r, Kind: encap.Ethernet, Datagram: nativeDatagram(encap.Ethernet, 2900)},
		{To: r, Kind: encap.Ethernet, Datagram: nativeDatagram(encap.Ethernet, 3000)},
	}
	if n, err := p.SendBatch(list); n != 1 || !errors.Is(err, roce.ErrQueueFull) {
		t.Errorf("%d sent (%v)", n, err)
	}
	if n := counterOf(t, d, "native_tx_packets"); n != 2 {
		t.Errorf("%d packets, want the two of the first", n)
	}
}

// TestNativeMisuse names what cannot be done.
func TestNativeMisuse(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, rawOptions)
	d, peer := w.devs[0], w.devs[1].Port().MAC
	for _, n := range []int{-1, 1<<14 + 1} {
		_, err := d.OpenNative(engine.NativeConfig{Datagrams: n})
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%d datagrams: %v", n, err)
		}
	}
	raw := rawSeat(t, d, experimental)
	if _, err := d.OpenNative(engine.NativeConfig{}); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("beside a raw QP: %v", err)
	}
	must(t, raw.qp.Close())
	p := openNative(t, d, engine.NativeConfig{})
	if _, err := d.OpenNative(engine.NativeConfig{}); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("two ports: %v", err)
	}
	tag := customer(1)
	for _, c := range []struct {
		what string
		to   [6]byte
		t    encap.Template
		tags []wire.Tag
	}{
		{"a format of UD", peer, encap.Template{Format: encap.EoIB}, nil},
		{"no format", peer, encap.Template{Format: 99}, nil},
		{"our own address", d.Port().MAC, encap.Template{}, nil},
		{"no address", [6]byte{}, encap.Template{}, nil},
		{"three tags", peer, encap.Template{}, []wire.Tag{tag, tag, tag}},
		{"an unknown tag", peer, encap.Template{}, []wire.Tag{{TPID: 0x9100, TCI: 1}}},
		{"a field too large", peer, encap.Template{SL: 16}, nil},
		{"too much room", peer, encap.Template{Room: 4204}, nil},
		{"too little room", peer, encap.Template{Room: 20}, nil},
	} {
		if _, err := p.NewRoute(c.to, c.t, c.tags...); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	r := route(t, p, peer, encap.Raw)
	for n, reason := range map[int]encap.Reason{13: encap.TooShort, 9239: encap.TooLong} {
		err := p.Send(r, encap.Ethernet, nativeDatagram(encap.Ethernet, 9239)[:n])
		if !errors.Is(err, reason) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	r.Template.Room = 8000
	if err := p.Send(r, encap.Ethernet, make([]byte, 100)); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("room that grew: %v", err)
	}
	if err := p.Join(peer); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a group of one: %v", err)
	}
	if err := p.Leave([6]byte{0: 1}); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a group that was not joined: %v", err)
	}
}

// TestNativeClosed: a port that is closed, or whose device is, says so, also to who waits.
func TestNativeClosed(t *testing.T) {
	for _, direct := range []bool{false, true} {
		clock := engine.NewSystemClock()
		d, peer := simPair(t, newNetwork(t, 1, clock, sim.Faults{}),
			engine.Options{Clock: clock, Direct: direct})
		p := openNative(t, d, engine.NativeConfig{})
		r := route(t, p, peer.Port().MAC, encap.Raw)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ended: %v", err)
		}
		waited := make(chan error)
		go func() { waited <- p.Wait(t.Context()) }()
		must(t, p.Close())
		if err := <-waited; !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Wait: %v", err)
		}
		if err := p.Send(r, encap.Ethernet, make([]byte, 60)); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Send: %v", err)
		}
		if err := p.Join([6]byte{0: 1}); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Join: %v", err)
		}
		must(t, p.Close())
		p = openNative(t, d, engine.NativeConfig{})
		go func() { waited <- p.Wait(t.Context()) }()
		must(t, d.Close())
		if err := <-waited; !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Wait after Close of the device: %v", err)
		}
		if err := p.Send(r, encap.Ethernet, make([]byte, 60)); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Send after Close of the device: %v", err)
		}
		if _, err := d.OpenNative(engine.NativeConfig{}); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("a port of a closed device: %v", err)
		}
	}
}
