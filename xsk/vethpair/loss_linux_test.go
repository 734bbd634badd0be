package vethpair_test

import (
	"encoding/binary"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestLoss: a tenth of the frames is lost, each of which is counted, and the others arrive.
func TestLoss(t *testing.T) {
	const frames, ppm = 20000, 100000
	p := xsktest.NewPair(t, xsktest.Options{NoAddrs: true, LossPPM: ppm})
	received := func() (n uint64) {
		p.Do(xsktest.B, func() {
			l, err := netlink.LinkByName(vethpair.IfName)
			if err != nil {
				t.Fatal(err)
			}
			n = l.Attrs().Statistics.RxPackets
		})
		return n
	}
	lost := func() uint64 {
		n, err := p.Lost()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	came, gone := received(), lost()
	p.Do(xsktest.A, func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		frame := make([]byte, 60)
		copy(frame, p.B.MAC)
		copy(frame[6:], p.A.MAC)
		binary.BigEndian.PutUint16(frame[12:], 0x88b6) // of local experiments
		to := unix.SockaddrLinklayer{Ifindex: p.A.Ifindex}
		for range frames {
			if err := unix.Sendto(fd, frame, 0, &to); err != nil {
				t.Fatal(err)
			}
		}
	})
	came, gone = received()-came, lost()-gone
	if came+gone != frames {
		t.Errorf("%d frames came and %d were lost, of %d", came, gone, frames)
	}
	const want, sigma6 = frames / 10, 255
	if gone < want-sigma6 || gone > want+sigma6 {
		t.Errorf("%d frames were lost, about %d were to be", gone, want)
	}
}
