package vethpair_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
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
	// The frames go in steps that a backlog of the kernel holds (net.core.netdev_max_backlog), and
	// the next step waits for the last one: on a busy host ksoftirqd delivers, later. All that is
	// on the host shares the backlogs, and what they had no room for the kernel counts.
	const step = 200
	came, gone, overrun := received(), lost(), xsktest.Overruns(t)
	end := time.Now().Add(timeout.Scaled(10 * time.Second))
	arrive := func(n uint64) {
		for received()-came+lost()-gone+xsktest.Overruns(t)-overrun < n && time.Now().Before(end) {
			runtime.Gosched()
		}
	}
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
		for i := range uint64(frames) {
			if i%step == 0 {
				arrive(i)
			}
			if err := unix.Sendto(fd, frame, 0, &to); err != nil {
				t.Fatal(err)
			}
		}
	})
	arrive(frames)
	came, gone, overrun = received()-came, lost()-gone, xsktest.Overruns(t)-overrun
	if came+gone > frames || came+gone+overrun < frames {
		t.Errorf("%d frames came and %d were lost, of %d; on the host %d found no room", came, gone,
			frames, overrun)
	}
	const want, sigma6 = frames / 10, 255
	if gone < want-sigma6 || gone > want+sigma6 {
		t.Errorf("%d frames were lost, about %d were to be", gone, want)
	}
}
