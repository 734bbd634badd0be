package main

import (
	"errors"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// TestRootTunnelLoss sends TCP through a tunnel over RC on a wire that loses a hundredth of the
// frames. All comes, and what is lost is hardly seen inside: RC sends it again before TCP does. It
// is done again where an end was not scheduled for so long that it lost its connection, or that
// TCP, which waits for 0.2 s, was earlier.
func TestRootTunnelLoss(t *testing.T) {
	for _, flags := range []string{"--tap in0 --over rc", "--tun in0 --over rc"} {
		t.Run(flags, func(t *testing.T) {
			var lost uint64
			var again uint32
			patiently(func() bool {
				w := join(t, vethpair.Options{LossPPM: 10000}, flags+" --json")
				s := w.connect(insideIPv4)
				before, err := w.pair.Lost()
				if err != nil {
					t.Fatal(err)
				}
				s.bring(t, 16<<20)
				after, err := w.pair.Lost()
				if err != nil {
					t.Fatal(err)
				}
				lost, again = after-before, s.retransmits(t)
				t.Logf("%d frames were lost, and TCP sent %d segments again", lost, again)
				stats := w.end()
				return !foundAgain(1, stats[:]...) && uint64(again) <= lost/2
			})
			if lost == 0 || uint64(again) > lost/2 {
				t.Errorf("%d frames were lost, and TCP sent %d segments again", lost, again)
			}
		})
	}
}

// TestRootTunnelLinkFlaps takes the link down and up while TCP sends: it goes on, and so do new
// connections.
func TestRootTunnelLinkFlaps(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, flags := range []string{"--tap in0", "--tap in0 --over rc", "--tap in0 --over native"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			w := join(t, vethpair.Options{}, flags)
			s := w.connect(insideIPv4)
			for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
				s.bring(t, 1<<20)
				w.outside(side, netlink.LinkSetDown)
				receive := s.send(t, 1<<20)
				w.outside(1-side, func(link netlink.Link) error { // the other end has noticed
					late := time.Now().Add(timeout.Scaled(insidePatience))
					for link.Attrs().OperState == netlink.OperUp {
						if time.Now().After(late) {
							return errors.New("the link stays up")
						}
						var err error
						if link, err = netlink.LinkByName(vethpair.IfName); err != nil {
							return err
						}
						time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
					}
					return nil
				})
				w.outside(side, netlink.LinkSetUp)
				receive(t)
			}
			w.connect(insideIPv4).bring(t, 1<<20)
		})
	}
}

// outside does something with the interface below the tunnel.
func (w *joined) outside(side vethpair.Side, f func(netlink.Link) error) {
	w.t.Helper()
	w.do(side, func() error {
		link, err := netlink.LinkByName(vethpair.IfName)
		if err != nil {
			return err
		}
		return f(link)
	})
}
