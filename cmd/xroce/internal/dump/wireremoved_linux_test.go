package dump

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// TestWireRemoved: an interface that goes down while packets of it wait to be taken, and that is
// removed then, ends the capture. Its socket tells that it is down before it gives them out.
func TestWireRemoved(t *testing.T) {
	xsktest.NeedRoot(t)
	p, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	do := func(s vethpair.Side, f func() error) {
		t.Helper()
		if err := p.Do(s, f); err != nil {
			t.Fatal(err)
		}
	}
	var w *Wire
	do(vethpair.A, func() (err error) {
		w, err = OpenWire(vethpair.IfName, nil, 0)
		return err
	})
	defer w.Close()
	do(vethpair.B, func() error {
		to := net.UDPAddr{IP: p.A.IPv4.Addr().AsSlice(), Port: 9}
		conn, err := net.DialUDP("udp", nil, &to)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("a datagram that nobody takes"))
		return err
	})
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !w.Buffered() {
		<-again.C
	}
	link := netlink.Link(nil)
	do(vethpair.A, func() (err error) {
		if link, err = netlink.LinkByName(vethpair.IfName); err != nil {
			return err
		}
		return netlink.LinkSetDown(link)
	})
	late := time.AfterFunc(timeout.Scaled(20*time.Second), func() { _ = w.Stop() })
	defer late.Stop()
	if _, err := w.Next(); err != nil {
		t.Fatal("a packet from before:", err)
	}
	do(vethpair.A, func() error { return netlink.LinkDel(link) })
	for err = error(nil); err == nil; {
		_, err = w.Next()
	}
	if !errors.Is(err, errRemoved) {
		t.Error("not told that it was removed:", err)
	}
}
