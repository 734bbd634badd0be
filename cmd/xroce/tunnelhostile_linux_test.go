package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/tunnel"
	"xroce/roce/gen"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
)

// A packetSocket sends frames by an interface of one end (packet(7)).
type packetSocket struct {
	fd int
	to unix.SockaddrLinklayer
}

// packets makes one. With offloads a virtio-net header is before each frame.
func (w *joined) packets(side vethpair.Side, ifindex int, offloads bool) *packetSocket {
	w.t.Helper()
	s := &packetSocket{to: unix.SockaddrLinklayer{Ifindex: ifindex}}
	w.do(side, func() (err error) {
		s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err == nil && offloads {
			err = unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1)
		}
		return err
	})
	w.t.Cleanup(func() { unix.Close(s.fd) })
	return s
}

// send sends a frame, and reports whether the kernel takes it: it knows some that are bad itself,
// and a queue may be full.
func (s *packetSocket) send(t *testing.T, frame []byte) bool {
	t.Helper()
	err := unix.Sendto(s.fd, frame, 0, &s.to)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EMSGSIZE), errors.Is(err, unix.ENOBUFS):
		return false
	case err != nil:
		t.Fatal(err)
	}
	return true
}

// end ends the tunnels and returns what each counted.
func (w *joined) end() (stats [2]tunnel.Stats) {
	w.t.Helper()
	for i, cmd := range w.tunnels {
		if err := errors.Join(cmd.Process.Signal(unix.SIGTERM), cmd.Wait()); err != nil {
			w.t.Fatalf("%v, %s", err, cmd.Stdout)
		}
		if err := json.Unmarshal([]byte(fmt.Sprint(cmd.Stdout)), &stats[i]); err != nil {
			w.t.Fatalf("%v, %s", err, cmd.Stdout)
		}
	}
	return stats
}

// TestRootTunnelHostileInside has a host inside send what no host should: frames that are too short
// and too long, headers that lie, addresses that nobody has, packets of tunnels and offloads that
// make no sense. The tunnel goes on and says what it dropped.
func TestRootTunnelHostileInside(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, over := range []string{"ud", "rc", "uc", "native"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := join(t, vethpair.Options{}, "--tap in0 --json --over "+over)
			s := w.connect(insideIPv4)
			s.bring(t, 1000)
			a, b := w.inside(vethpair.A), w.inside(vethpair.B)
			plain := w.packets(vethpair.B, b.Index, false)
			offloads := w.packets(vethpair.B, b.Index, true)
			r := rand.New(rand.NewPCG(1, 2))
			taken := 0
			for n := range 2000 {
				frame := w.hostileFrame(r, a.HardwareAddr, b.HardwareAddr)
				if plain.send(t, frame) {
					taken++
				}
				header := make([]byte, inner.VNetLen, inner.VNetLen+len(frame))
				inner.VNet{
					Flags: uint8(r.UintN(4)), GSO: uint8(r.UintN(6)),
					HeaderLen: uint16(r.UintN(200)), GSOSize: uint16(r.UintN(3000)),
					ChecksumStart: uint16(r.UintN(200)), ChecksumOffset: uint16(r.UintN(40)),
				}.Put(header)
				if offloads.send(t, append(header, frame...)) {
					taken++
				}
				if n%500 == 0 {
					s.bring(t, 100000)
				}
			}
			if taken < 1000 {
				t.Errorf("the kernel took %d frames", taken)
			}
			s.bring(t, 1<<20)
			stats := w.end()
			if n := stats[vethpair.B].Peers[0].Dropped["own"]; n == 0 {
				t.Errorf("no packet of a tunnel was dropped: %+v", stats[vethpair.B])
			}
		})
	}
}

// hostileFrame makes a frame from one end or nobody to the other end, everybody or nobody. None
// is in the name of the other end: that any bridge would believe.
func (w *joined) hostileFrame(r *rand.Rand, to, from []byte) []byte {
	length := []int{14, 15, 20, 59, 60, 64, 300, 1500, 1514, 1518, 1519, 9000}[r.IntN(12)]
	frame := make([]byte, length)
	for i := range frame {
		frame[i] = byte(r.Uint32())
	}
	nobody := []byte{2, 9, 9, 9, 9, byte(r.Uint32())}
	group, zero := []byte{1, 0, 0x5e, 1, 2, 3}, make([]byte, 6)
	everybody := []byte{255, 255, 255, 255, 255, 255}
	copy(frame, [][]byte{to, everybody, group, nobody, zero, from}[r.IntN(6)])
	copy(frame[6:], [][]byte{from, nobody, group, zero, everybody}[r.IntN(5)])
	types := []uint16{
		inner.TypeIPv4, inner.TypeIPv6, inner.TypeARP, inner.TypeVLAN, inner.TypeQinQ,
		encap.EtherTypeNative, wire.EtherTypeV1, 5, 0xffff,
	}
	binary.BigEndian.PutUint16(frame[12:], types[r.IntN(len(types))])
	if length > 42 && r.IntN(2) == 0 { // IP whose lengths may be true
		frame[14] = 0x45
		binary.BigEndian.PutUint16(frame[16:], uint16(length-14+r.IntN(3)-1))
		frame[23] = inner.ProtocolUDP
		copy(frame[26:], w.pair.B.IPv4.Addr().AsSlice()) // as the tunnel sends it
		copy(frame[30:], w.pair.A.IPv4.Addr().AsSlice())
		binary.BigEndian.PutUint16(frame[36:], wire.UDPPort)
	}
	return frame
}

// TestRootTunnelHostileOutside has somebody on the wire send malformed and forged packets in the
// name of the peer to the very queue pairs of a tunnel. What was sent inside comes, and no other.
func TestRootTunnelHostileOutside(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, flags := range []string{"--tap in0", "--tap in0 --over rc", "--tun in0 --over uc"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			w := join(t, vethpair.Options{}, flags+" --json")
			s := w.connect(insideIPv4)
			a, b := &w.pair.A, &w.pair.B
			fuzzer, err := gen.NewFuzzer(wire.Path{
				SrcMAC: [6]byte(b.MAC), DstMAC: [6]byte(a.MAC), HopLimit: 64,
				Src: wire.GIDFromAddr(b.IPv4.Addr()), Dst: wire.GIDFromAddr(a.IPv4.Addr()),
				SrcPort: 50000,
			}, 1514, 1, 0, w.queuePairs(vethpair.A))
			if err != nil {
				t.Fatal(err)
			}
			out := w.packets(vethpair.B, b.Ifindex, false)
			frame := make([]byte, 1514)
			for range 4 {
				for range 5000 {
					out.send(t, frame[:fuzzer.Next(frame, 0)])
				}
				s.bring(t, 200000)
			}
			w.connect(insideIPv4).bring(t, 1<<20)
			w.end()
		})
	}
}

// queuePairs are the numbers of those of a tunnel.
func (w *joined) queuePairs(side vethpair.Side) (list []uint32) {
	w.t.Helper()
	cmd := child(w.t, 0, "res", "show", "qp")
	cmd.Env = append(cmd.Env, strings.TrimSpace(w.tunnels[side].Env[len(w.tunnels[side].Env)-1]))
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(` lqpn (\d+)`).FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.ParseUint(m[1], 10, 24)
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, uint32(n))
	}
	if len(list) == 0 {
		w.t.Fatalf("no queue pairs: %s", out)
	}
	return list
}
