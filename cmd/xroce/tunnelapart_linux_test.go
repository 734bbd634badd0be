package main

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRootTunnelApart: two networks on the same wire, by their segment, their partition or their
// key, do not see each other: nothing that is sent to all in the one comes to the other, which
// counts who asked, while the end that fits gets it.
func TestRootTunnelApart(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, tt := range []struct{ name, ours, others string }{
		{"segments over ud", "--segment 1", "--segment 2"},
		{
			"segments of vnic over rc", "--segment 1 --over rc --format vnic",
			"--segment 2 --over rc --format vnic",
		},
		{"partitions over native", "--pkey 0x8005 --over native", "--pkey 0x8006 --over native"},
		{"formats over uc", "--over uc", "--over uc --format vnic"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hosts, _ := hostsOnBridge(t, 3, 1500)
			a, _ := startTunnel(t, hosts[0], "--peer 10.99.0.2,10.99.0.3 "+tt.ours)
			b, _ := startTunnel(t, hosts[1], "--peer 10.99.0.1,10.99.0.3 "+tt.ours)
			c, _ := startTunnel(t, hosts[2], "--peer 10.99.0.1,10.99.0.2 "+tt.others)
			inside, fits := rawSocketIn(t, hosts[0], "in0"), rawSocketIn(t, hosts[1], "in0")
			apart := rawSocketIn(t, hosts[2], "in0")
			broadcastUntilHeard(t, inside, []*rawSocket{fits})
			mark := []byte("not for the other network")
			frame, again := fits.nextOf(t, mark, func() { inside.broadcast(t, mark) })
			if frame == nil {
				t.Error("it did not come where it belongs")
			}
			if apart.next(t, mark, time.Second) != nil {
				t.Error("it came to the other network")
			}
			s := endTunnel(t, a)
			if s.Peers[1].TxPackets != 0 || s.Peers[1].Connects != 0 {
				t.Errorf("the other network is known: %+v", s.Peers[1])
			}
			excused(t, again, 1, s, endTunnel(t, b))
			if s := endTunnel(t, c); s.Peers[0].RxDatagrams+s.Peers[1].RxDatagrams != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestRootTunnelKilled: an end that is killed, without a word to anybody, and started again is
// found again by the other, which goes on all the time.
func TestRootTunnelKilled(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, flags := range []string{"", "--over rc", "--over uc", "--over native"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			hosts, _ := hostsOnBridge(t, 2, 1500)
			a, _ := startTunnel(t, hosts[0], "--peer 10.99.0.2 "+flags)
			inside := rawSocketIn(t, hosts[0], "in0")
			for range 2 {
				b, _ := startTunnel(t, hosts[1], "--peer 10.99.0.1 "+flags)
				there := rawSocketIn(t, hosts[1], "in0")
				broadcastUntilHeard(t, inside, []*rawSocket{there})
				broadcastUntilHeard(t, there, []*rawSocket{inside})
				if err := b.Process.Signal(unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				_ = b.Wait() // it was killed
			}
			endTunnel(t, a)
		})
	}
}

// TestRootTunnelVLANInside: frames with one tag and with two inside come as they were sent, over
// all that a TAP travels over, also those that are as long as an MTU of 1500 lets them be.
func TestRootTunnelVLANInside(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, flags := range []string{"", "--over rc --format vnic", "--over uc", "--over native"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			hosts, _ := hostsOnBridge(t, 2, 9000)
			a, _ := startTunnel(t, hosts[0], "--peer 10.99.0.2 "+flags)
			b, _ := startTunnel(t, hosts[1], "--peer 10.99.0.1 "+flags)
			inside, there := rawSocketIn(t, hosts[0], "in0"), rawSocketIn(t, hosts[1], "in0")
			broadcastUntilHeard(t, inside, []*rawSocket{there})
			lost := 0
			for _, tags := range [][]byte{
				{0x81, 0, 0x60, 5}, {0x88, 0xa8, 0, 100, 0x81, 0, 0x60, 5},
			} {
				mark := append([]byte("behind tags of "), byte('0'+len(tags)))
				frame := []byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01")
				frame = append(append(append(frame, tags...), 0x88, 0xb6), mark...)
				frame = append(frame, make([]byte, 1500-len(mark))...)
				frame = frame[:1518-(len(tags)-4)] // longer ones a packet socket does not send
				to := &unix.SockaddrLinklayer{Ifindex: inside.ifindex}
				got, again := there.nextOf(t, mark, func() {
					if err := unix.Sendto(inside.fd, frame, 0, to); err != nil {
						t.Fatal(err)
					}
				})
				lost += again
				// The kernel takes the outer tag out of what a packet socket reads.
				if want := append(frame[:12:12], frame[16:]...); !bytes.Equal(got, want) &&
					!bytes.Equal(got, frame) {
					t.Errorf("%d bytes came, %d were sent", len(got), len(frame))
				}
			}
			excused(t, lost, 1, endTunnel(t, a), endTunnel(t, b))
		})
	}
}
