package engine_test

import (
	"slices"
	"testing"

	"xroce/encap"
	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
)

// TestWatchNative: a watch tells of each native packet that leaves or comes, with all of its bytes.
func TestWatchNative(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a := openNative(t, w.devs[0], engine.NativeConfig{})
	b := openNative(t, w.devs[1], engine.NativeConfig{})
	var atA, atB watched
	var burst together
	defer w.devs[0].Watch(&atA)()
	defer w.devs[0].Watch(&burst)()
	defer w.devs[1].Watch(&atB)()
	there := route(t, a, w.devs[1].Port().MAC, encap.Raw)
	there.Template.Room = 1500
	for range 2 {
		must(t, a.Send(there, encap.Ethernet, nativeDatagram(encap.Ethernet, 2900)))
		for range 2 { // segments
			w.receiveNative(b)
		}
	}
	back := route(t, b, w.devs[0].Port().MAC, encap.Raw)
	must(t, b.Send(back, encap.Ethernet, nativeDatagram(encap.Ethernet, 60)))
	w.receiveNative(a)

	want := append(slices.Repeat([]string{"out sent"}, 4), "in accepted")
	if !slices.Equal(atA.lines, want) {
		t.Errorf("at A: %q, want %q", atA.lines, want)
	}
	want = append(slices.Repeat([]string{"in accepted"}, 4), "out sent")
	if !slices.Equal(atB.lines, want) {
		t.Errorf("at B: %q, want %q", atB.lines, want)
	}
	values := counters(t, w.devs[0])
	n := int(values["tx_bytes"] + values["rx_bytes"])
	if atA.bytes != n || atB.bytes != n {
		t.Errorf("%d bytes at A and %d at B, want %d", atA.bytes, atB.bytes, n)
	}
	if out := burst[capture.Outbound]; !slices.Equal(out, []bool{false, true, false, true}) {
		t.Errorf("those of two calls are together %v", out)
	}
}

// TestWatchNativeRefused: native packets that are not taken are dropped, with the reason that
// counts them.
func TestWatchNativeRefused(t *testing.T) {
	f, _ := forgers(t)
	var seen watched
	defer f.w.devs[1].Watch(&seen)()
	expect := func(packet []byte, want string) {
		t.Helper()
		n := len(seen.lines)
		f.frame(t, packet)
		f.w.run(func() bool { return len(seen.lines) > n })
		if got := seen.lines[n]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, c := range nativeHostile {
		expect(c.change(nativeForged(t)), "in dropped: "+c.want.String())
	}
	mine := f.to
	f.to = [6]byte{1, 2, 3, 4, 5, 6} // a group that was not joined
	expect(nativeForged(t), "in dropped: not_local")
	f.to = mine
	for range 4 { // as many as may wait
		expect(nativeForged(t), "in accepted")
	}
	expect(nativeForged(t), "in dropped: native_out_of_buffer")
}
