package bpf

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestNearFollowsOwn: whatever comes and goes, a packet is taken for the addresses that are
// owned and for no others, at once, be they in the program's array or in its hash alone; and
// the array is never less full than it could be.
func TestNearFollowsOwn(t *testing.T) {
	requireXDP(t)
	p := loadProgram(t)
	r := rand.New(rand.NewPCG(1, 1))
	frames := map[Key][]byte{}
	var keys []Key
	add := func(k Key, frame []byte) { keys, frames[k] = append(keys, k), frame }
	for i := range byte(6) {
		mac := [6]byte{2, 0, 0, 0, 0, 10 + i}
		add(V1Key(mac), cat(ether(mac, ethPIBoE), make([]byte, 60)))
		add(NativeKey(mac), cat(ether(mac, ethPNative), make([]byte, 60)))
		four, six := ownIPv4.As4(), ownIPv6.As16()
		four[3], six[15] = 10+i, 10+i
		for _, addr := range []netip.Addr{netip.AddrFrom4(four), netip.AddrFrom16(six)} {
			k, err := AddrKey(addr)
			if err != nil {
				t.Fatal(err)
			}
			if addr.Is6() {
				add(k, udp6(addr))
			} else {
				add(k, udp4(addr))
			}
		}
	}
	owned := map[Key]bool{}
	for range 300 {
		k := keys[r.IntN(len(keys))]
		change := p.Own
		if owned[k] || r.IntN(4) == 0 {
			change = p.Disown
			delete(owned, k)
		} else {
			owned[k] = true
		}
		if err := change(k); err != nil {
			t.Fatal(err)
		}
		for key, frame := range frames {
			want := PassNotOurs
			if owned[key] {
				want = PassNoSocket
			}
			judge(t, &p.objs, frame, -1, Pass, want)
		}
		in := 0
		for _, key := range p.near {
			if key != (Key{}) {
				in++
				if !owned[key] {
					t.Errorf("%v is in the array and not owned", key)
				}
			}
		}
		if in != min(len(owned), nearKeys) {
			t.Errorf("%d keys in the array, %d owned", in, len(owned))
		}
		if t.Failed() {
			return
		}
	}
}
