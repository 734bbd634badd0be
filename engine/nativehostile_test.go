package engine_test

import (
	"io"
	"testing"

	"xroce/encap"
	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/roce"
)

// A forger sends frames of EtherType 0x88b5 by a raw QP.
type forger struct {
	*seat
	w  *world
	to [6]byte
}

// frame sends a native packet as it is, behind an Ethernet header.
func (f *forger) frame(t *testing.T, packet []byte) {
	t.Helper()
	f.fill(f.to, experimental, ethernetLen)
	n := ethernetLen + copy(f.mr.Bytes()[ethernetLen:], packet)
	f.post(t, n)
	f.w.succeed(f.cq, 1)
}

const ethernetLen = 14

// forgers make a world in which one device forges and the other has a native port.
func forgers(t *testing.T) (*forger, *engine.NativePort) {
	t.Helper()
	w := simWorld(t, 2, sim.Faults{}, rawOptions)
	port := openNative(t, w.devs[1], engine.NativeConfig{Datagrams: 4})
	return &forger{rawSeat(t, w.devs[0]), w, w.devs[1].Port().MAC}, port
}

// nativeDrops are the packets that a device has refused, by reason and in all.
func nativeDrops(t *testing.T, d *engine.Device) (by map[encap.Reason]uint64, all uint64) {
	t.Helper()
	values := counters(t, d)
	by = map[encap.Reason]uint64{}
	for r := encap.TooShort; r <= encap.BadFCS; r++ {
		n, ok := values["native_drop_"+r.String()]
		if !ok {
			t.Fatalf("no counter of %s", r)
		}
		by[r] = n
		all += n
	}
	return by, all
}

// nativeHostile is what may be wrong with a packet of nativeForged, and the reason to refuse it.
var nativeHostile = []struct {
	change func([]byte) []byte
	want   encap.Reason
}{
	{func(b []byte) []byte { return b[:7] }, encap.Truncated},
	{func(b []byte) []byte { return b[:len(b)-1] }, encap.Truncated},
	{func(b []byte) []byte { b[0] |= 1; return b }, encap.BadLRH},
	{func(b []byte) []byte { b[1] |= 2; return b }, encap.NotRaw},
	{func(b []byte) []byte { b[1] |= 3; return b }, encap.BadGRH},
	{func(b []byte) []byte { b[1] |= 1; return b }, encap.BadIPVersion},
	{func(b []byte) []byte { b[10] = 0x99; return b }, encap.UnknownType},
	{func(b []byte) []byte { b[60] ^= 4; return b }, encap.BadVCRC},
	{func(b []byte) []byte { b[4], b[5] = 0x07, 0xff; return b }, encap.Truncated},
	{func(b []byte) []byte { b[4], b[5] = 0, 2; return b }, encap.BadLength},
}

// nativeForged is a packet with a datagram of 101 bytes, with which nothing is wrong.
func nativeForged(t *testing.T) []byte {
	t.Helper()
	template := encap.Template{Format: encap.Raw, Room: 2000}
	packet := make([]byte, 2000)
	n, reason := template.Put(packet, encap.Ethernet, nativeDatagram(encap.Ethernet, 101))
	if reason != encap.OK {
		t.Fatal(reason)
	}
	return packet[:n]
}

// TestNativeHostile: what is no packet of ours is counted by its reason, and nothing else.
func TestNativeHostile(t *testing.T) {
	f, port := forgers(t)
	packet := nativeForged(t)
	for _, c := range nativeHostile {
		before, all := nativeDrops(t, f.w.devs[1])
		f.frame(t, c.change(append([]byte{}, packet...)))
		f.w.run(func() bool { _, n := nativeDrops(t, f.w.devs[1]); return n > all })
		if after, _ := nativeDrops(t, f.w.devs[1]); after[c.want] != before[c.want]+1 {
			t.Errorf("%s is not counted: %v", c.want, after)
		}
	}
	// To a group that was not joined, and to somebody else.
	mine := f.to
	for i, to := range [][6]byte{{1, 2, 3, 4, 5, 6}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		f.to = to
		f.frame(t, packet)
		f.w.run(func() bool {
			return counterOf(t, f.w.devs[1], "drop_not_local") == uint64(i+1)
		})
	}
	f.to = mine
	var list [4]engine.NativeDatagram
	if n := port.Poll(list[:]); n != 0 {
		t.Errorf("%d datagrams", n)
	}
	f.frame(t, packet)
	if d := f.w.receiveNative(port); d.Len() != 101 {
		t.Errorf("%d bytes", d.Len())
	}
}

// TestNativeTruncated cuts a packet at each length: all are refused and counted.
func TestNativeTruncated(t *testing.T) {
	f, port := forgers(t)
	template := encap.Template{Format: encap.RawGRH, Room: 2000}
	packet := make([]byte, 2000)
	n, _ := template.Put(packet, encap.IPv4, nativeDatagram(encap.IPv4, 30))
	for i := range n {
		f.frame(t, packet[:i])
	}
	f.w.run(func() bool {
		_, all := nativeDrops(t, f.w.devs[1])
		return all == uint64(n)
	})
	var list [1]engine.NativeDatagram
	if port.Poll(list[:]) != 0 {
		t.Error("a part is a datagram")
	}
}

// TestNativeDoesNotAllocate counts allocations from Send to Poll, on both devices, which are
// captured or not.
func TestNativeDoesNotAllocate(t *testing.T) {
	t.Run("alone", func(t *testing.T) { nativeDoesNotAllocate(t, false) })
	t.Run("captured", func(t *testing.T) { nativeDoesNotAllocate(t, true) })
}

func nativeDoesNotAllocate(t *testing.T, captured bool) {
	w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond}, engine.Options{})
	a := openNative(t, w.devs[0], engine.NativeConfig{})
	b := openNative(t, w.devs[1], engine.NativeConfig{})
	r := route(t, a, w.devs[1].Port().MAC, encap.Raw)
	r.Template.Room = 1500
	datagram := nativeDatagram(encap.Ethernet, 4000) // in three segments
	if captured {
		writer := capture.New(io.Discard, capture.Config{Interface: "a"})
		defer writer.Close()
		for _, d := range w.devs {
			defer d.Watch(writer)()
		}
	}
	var list [4]engine.NativeDatagram
	came := 0
	done := func() bool { came += b.Poll(list[:]); return came == 3 }
	machines := machinesOf(w.devs)
	message := func() {
		came = 0
		if err := a.Send(r, encap.Ethernet, datagram); err != nil {
			t.Fatal(err)
		}
		if err := w.network.Run(w.clock, w.clock.Now()+roce.Second, done, machines...); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		message()
	}
	if n := testing.AllocsPerRun(200, message); n != 0 {
		t.Errorf("%v allocations a datagram", n)
	}
}
