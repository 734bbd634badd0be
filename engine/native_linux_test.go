package engine_test

import (
	"testing"

	"github.com/vishvananda/netlink"

	"xroce/bpf"
	"xroce/encap"
	"xroce/engine"
	"xroce/roce"
	"xroce/xsk/vethpair"
)

// TestNativeIsSteered: frames of EtherType 0x88b5 are the kernel's but while a port is open,
// and those to a group but while it has joined that.
func TestNativeIsSteered(t *testing.T) {
	s := steer(t, engine.Options{})
	mac := s.dev.Port().MAC
	group := [6]byte{0x01, 0x00, 0x5e, 1, 2, 3}
	broadcast := [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	s.expect("no port", mac, experimental, bpf.PassNotOurs)
	port := openNative(t, s.dev, engine.NativeConfig{})
	s.expect("a port", mac, experimental, bpf.RedirectNative)
	for _, to := range [][6]byte{group, broadcast} {
		s.expect("a group of others", to, experimental, bpf.PassNotOurs)
		for range 2 { // the second does nothing
			must(t, port.Join(to))
		}
		s.expect("a group", to, experimental, bpf.RedirectNative)
		must(t, port.Leave(to))
		s.expect("a group that was left", to, experimental, bpf.PassNotOurs)
		must(t, port.Join(to))
	}
	must(t, port.Close())
	for _, to := range [][6]byte{mac, group, broadcast} {
		s.expect("no port any more", to, experimental, bpf.PassNotOurs)
	}
}

// TestNativeFollowsTheMAC: when the interface gets another MAC address, frames to that one are the
// port's, and those to the old one are the kernel's.
func TestNativeFollowsTheMAC(t *testing.T) {
	s := steer(t, engine.Options{})
	openNative(t, s.dev, engine.NativeConfig{})
	was := s.dev.Port().MAC
	s.expect("a port", was, experimental, bpf.RedirectNative)
	next := was
	next[5] ^= 0x40
	in(t, s.w.pair, vethpair.B, func(l netlink.Link) error {
		return netlink.LinkSetHardwareAddr(l, next[:])
	})
	eventually(t, "the event of the new address", func() bool {
		e, _ := s.dev.PollEvent()
		return e.Type == roce.EventGIDChange
	})
	s.expect("the new address", next, experimental, bpf.RedirectNative)
	s.expect("the old address", was, experimental, bpf.PassNotOurs)
}

// TestNativeToAGroup: one packet reaches who has joined, and says which group it was to.
func TestNativeToAGroup(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a := openNative(t, w.devs[0], engine.NativeConfig{})
		b := openNative(t, w.devs[1], engine.NativeConfig{})
		for i, group := range [][6]byte{
			{0x33, 0x33, 0, 1, 2, 3}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		} {
			must(t, b.Join(group))
			r := route(t, a, group, encap.Raw)
			must(t, a.Send(r, encap.Ethernet, nativeDatagram(encap.Ethernet, 100+i)))
			if d := w.receiveNative(b); d.To != group || d.Len() != 100+i {
				t.Errorf("%d bytes to %x", d.Len(), d.To)
			}
		}
	})
}

// TestNativeOutlivesItsDevice: a port may be closed after its device, groups and all.
func TestNativeOutlivesItsDevice(t *testing.T) {
	w := vethWorld(t, vethpair.Options{}, engine.Options{})
	port := openNative(t, w.devs[0], engine.NativeConfig{})
	must(t, port.Join([6]byte{0x01, 0x00, 0x5e, 1, 2, 3}))
	must(t, port.Join([6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}))
	must(t, w.devs[0].Close())
	must(t, port.Close())
}
