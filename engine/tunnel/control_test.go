package tunnel

import (
	"bytes"
	"encoding/binary"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/sim"
)

// tcp makes an IPv4 packet of TCP that the kernel left uncut, with n bytes of payload.
func tcp(n int) (inner.VNet, []byte) {
	b := ipv4(1, 2, 40+n)
	b[9], b[32], b[33] = inner.ProtocolTCP, 5<<4, 0x10
	for i := range b[40:] {
		b[40+i] = byte(i * 11)
	}
	// The sum of the pseudo-header, as the kernel leaves it.
	sum := uint32(inner.ProtocolTCP + 20 + n)
	for i := 12; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[36:], uint16(sum))
	return inner.VNet{
		Flags: inner.NeedsChecksum, GSO: inner.GSOTCPv4, GSOSize: 900, HeaderLen: 40,
		ChecksumStart: 20, ChecksumOffset: 16,
	}, b
}

// TestUncut: a packet of TCP that the kernel left uncut comes whole over RC, with the words that
// say how to cut it, and in segments with good checksums over UD.
func TestUncut(t *testing.T) {
	for _, tt := range shapes[4:6] {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			l.inside = 1020
			a, b := l.site(1, 1500, TUN, tt.config, 2), l.site(2, 1500, TUN, tt.config, 1)
			a.awaitUp()
			b.awaitUp()
			v, packet := tcp(30000)
			want := bytes.Clone(packet)
			a.send(v, packet)
			if tt.config.Over == OverRC {
				if got, came := b.receive(); got != v || !bytes.Equal(came, want) {
					t.Errorf("%+v and %d bytes, want %+v", got, len(came), v)
				}
				return
			}
			for at := 0; at < 30000; {
				got, came := b.receive()
				segment := came[40:]
				if got != (inner.VNet{}) || !bytes.Equal(segment, want[40+at:][:len(segment)]) {
					t.Fatalf("at %d: %+v, %d bytes", at, got, len(came))
				}
				at += len(segment)
			}
		})
	}
}

// TestTooBig: who sends more than the inside of the peer takes is told how much that is.
func TestTooBig(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.IPoIBConnected, Over: OverRC}
	a := l.site(1, 1500, TUN, c, 2)
	l.inside = 1400
	b := l.site(2, 1500, TUN, c, 1)
	a.awaitUp()
	b.awaitUp()
	packet := ipv4(1, 2, 1401)
	packet[6] = 0x40
	a.send(inner.VNet{}, packet)
	_, got := a.receive()
	if len(got) < 28 || got[9] != inner.ProtocolICMP || got[20] != 3 || got[21] != 4 ||
		binary.BigEndian.Uint16(got[26:]) != 1400 || !bytes.Equal(got[12:16], packet[16:20]) {
		t.Errorf("told %x", got)
	}
	if n := a.Stats().Peers[0].Dropped["too_long"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestFragmented: an IPv4 packet that may be cut goes in fragments to a peer whose inside is
// smaller than ours, also one whose checksum the kernel left to us.
func TestFragmented(t *testing.T) {
	for _, tt := range []struct {
		kind InsideKind
		Config
	}{
		{TUN, Config{Format: encap.IPoIBConnected, Over: OverRC}},
		{TAP, Config{Format: encap.EoIB}},
	} {
		t.Run(tt.kind.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			a := l.site(1, 1500, tt.kind, tt.Config, 2)
			l.inside = 600
			b := l.site(2, 1500, tt.kind, tt.Config, 1)
			a.awaitUp()
			b.awaitUp()
			packet := ipv4(1, 2, 1480)
			packet[9] = inner.ProtocolUDP
			binary.BigEndian.PutUint16(packet[24:], 1460)
			var before []byte
			if tt.kind == TAP {
				before = frame(2, 1, 14)
				before[12], before[13] = 8, 0
			}
			a.send(inner.VNet{
				Flags: inner.NeedsChecksum, ChecksumStart: uint16(len(before) + 20),
				ChecksumOffset: 6,
			}, append(bytes.Clone(before), packet...))
			var data []byte
			for len(data) < 1460 {
				_, got := b.receive()
				ip := got[len(before):]
				if at := binary.BigEndian.Uint16(ip[6:]) & 0x1fff; len(ip) > 600 ||
					int(at)*8 != len(data) || !bytes.Equal(got[:len(before)], before) {
					t.Fatalf("%d bytes at %d, behind %d", len(ip), at*8, len(data))
				}
				data = append(data, ip[20:]...)
			}
			if !bytes.Equal(data[8:], packet[28:]) || binary.BigEndian.Uint16(data[6:]) == 0 {
				t.Errorf("%x... came", data[:8])
			}
		})
	}
}

// TestFragmentedForOne: a datagram for all whose checksum the kernel left to us comes to each peer
// with words that are true of it, whoever of them has it in fragments.
func TestFragmentedForOne(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Over: OverRC}
	dev, m := l.deviceIn(1, 1500, direct) // what is posted is read later
	a := l.siteOn(dev, m, TAP, c, 2, 3, 4)
	others := []*site{l.site(2, 1500, TAP, c, 1), nil, l.site(4, 1500, TAP, c, 1)}
	l.inside = 1300
	others[1] = l.site(3, 1500, TAP, c, 1)
	for _, s := range append(others, a) {
		s.awaitUp()
	}
	packet := ipv4(255, 1, 1400)
	packet[9] = inner.ProtocolUDP
	binary.BigEndian.PutUint16(packet[24:], 1380)
	binary.BigEndian.PutUint16(packet[26:], 0x1234) // stands for that of the pseudo-header
	f := append(frame(0xff, 1, 14), packet...)
	f[12], f[13] = 8, 0
	v := inner.VNet{Flags: inner.NeedsChecksum, ChecksumStart: 34, ChecksumOffset: 6}
	full := bytes.Clone(f)
	if !v.Complete(full) {
		t.Fatal("no checksum")
	}
	for range 20 {
		a.send(v, bytes.Clone(f))
		for i, s := range others {
			words, got := s.receive()
			want := full
			switch {
			case i == 1:
				_, rest := s.receive()
				got = append(got, rest[34:]...)
				copy(got[14:34], f[14:]) // that of the first fragment differs
			case words == v:
				want = f
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("peer %d gets %+v, checksum %x, and was sent %x", i, words, got[40:42],
					f[40:42])
			}
		}
	}
}

// TestTrafficClass: the headers of a tunnel over UD have the marks of what is in them.
func TestTrafficClass(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	l.inside = 1020
	c := Config{Format: encap.IPoIB}
	a, b := l.site(1, 1500, TUN, c, 2), l.site(2, 1500, TUN, c, 1)
	a.awaitUp()
	b.awaitUp()
	for _, class := range []byte{0xb8 | inner.ECT0, 0, 0x28} {
		packet := ipv4(1, 2, 100)
		packet[1] = class
		sum := inner.Checksum(packet[:20])
		binary.BigEndian.PutUint16(packet[10:], sum)
		a.send(inner.VNet{}, packet)
		if _, got := b.receive(); !bytes.Equal(got, packet) {
			t.Errorf("%x came, %x was sent", got[:20], packet[:20])
		}
		w := a.peers[0].ways[0].Load()
		if got := w.handle(a.pd, class).Path().TClass; got != class {
			t.Errorf("class %02x in headers with %02x", class, got)
		}
	}
}

// TestOwnPackets: what the tunnel itself has sent is not sent into it.
func TestOwnPackets(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	l.inside = 1020
	a := l.site(1, 1500, TUN, Config{Format: encap.IPoIB}, 2)
	b := l.site(2, 1500, TUN, Config{Format: encap.IPoIB}, 1)
	a.awaitUp()
	b.awaitUp()
	packet := ipv4(1, 2, 200)
	packet[9] = inner.ProtocolUDP
	copy(packet[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	binary.BigEndian.PutUint16(packet[22:], 4791)
	a.send(inner.VNet{}, packet)
	after := ipv4(1, 2, 60)
	a.send(inner.VNet{}, after)
	if _, got := b.receive(); !bytes.Equal(got, after) {
		t.Errorf("%x came", got)
	}
	if n := a.Stats().Peers[0].Dropped["own"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestWrongSource: a packet goes to the peer that has its address, and one that a peer sends in the
// name of another is dropped.
func TestWrongSource(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	l.inside = 1020
	c := Config{Format: encap.IPoIB}
	a := l.site(1, 1500, TUN, c, 2)
	dev, m := l.device(2, 1500)
	c.Peers = []Peer{
		{Addr: addr(1), Routes: prefixes("10.0.0.2/32")},
		{Addr: addr(9), Routes: prefixes("10.0.0.0/24")},
	}
	b := l.siteOn(dev, m, TUN, c)
	a.awaitUp()
	b.await("not found", func(s Stats) bool { return s.Peers[0].Up })
	a.send(inner.VNet{}, ipv4(1, 3, 60))
	good := ipv4(1, 2, 60)
	a.send(inner.VNet{}, good)
	if _, got := b.receive(); !bytes.Equal(got, good) {
		t.Errorf("%x came", got)
	}
	if n := b.Stats().Peers[0].Dropped["bad_source"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	nowhere := ipv4(1, 2, 60)
	nowhere[16] = 99
	b.send(inner.VNet{}, nowhere)
	b.await("not counted", func(s Stats) bool { return s.Dropped["no_route"] == 1 })
}

// TestFaults: over RC all comes, once and in order, whatever the wire does; over anything else
// what comes is what was sent.
func TestFaults(t *testing.T) {
	faults := sim.Faults{
		Drop: 0.02, Dup: 0.02, Reorder: 0.02, Corrupt: 0.02, ReorderBy: 100_000, StaleBy: 100_000,
	}
	for _, tt := range shapes {
		if tt.kind != TAP || tt.most < 4000 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, faults)
			a, b := l.site(1, 1500, TAP, tt.config, 2), l.site(2, 1500, TAP, tt.config, 1)
			a.awaitUp()
			b.awaitUp()
			const count = 150
			for i := range count {
				a.send(inner.VNet{}, frame(0xff, byte(i), 60+i*20))
			}
			for i := range count {
				want := frame(0xff, byte(i), 60+i*20)
				if tt.config.Over == OverRC {
					if _, got := b.receive(); !bytes.Equal(got, want) {
						t.Fatalf("datagram %d: %x", i, got[:14])
					}
				}
			}
			if tt.config.Over == OverRC {
				return
			}
			a.await("not all sent", func(s Stats) bool { return s.Peers[0].TxDatagrams == count })
			for len(b.queue.out) > 0 {
				_, got := b.receive()
				if n := int(got[11]); !bytes.Equal(got, frame(0xff, byte(n), 60+n*20)) {
					t.Errorf("%x of %d bytes was not sent", got[:14], len(got))
				}
			}
		})
	}
}
