package tunnel

import (
	"bytes"
	"encoding/binary"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/sim"
)

// TestForAll: what is for many goes to each of two peers once: a broadcast as long as that of DHCP,
// multicast, and both behind one VLAN tag or two. What is for a host behind a tag goes to its
// peer alone, once that is known.
func TestForAll(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC, OverNative} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := Config{Format: formatOver(over), Over: over}
			a := l.site(1, 1500, TAP, c, 2, 3)
			others := []*site{l.site(2, 1500, TAP, c, 1, 3), l.site(3, 1500, TAP, c, 1, 2)}
			for _, s := range append(others, a) {
				s.awaitUp()
			}
			tag := func(b []byte, tpids ...uint16) []byte {
				for i, tpid := range tpids {
					word := binary.BigEndian.AppendUint16(nil, tpid)
					word = binary.BigEndian.AppendUint16(word, uint16(100+i))
					b = append(append(bytes.Clone(b[:12]), word...), b[12:]...)
				}
				return b
			}
			dhcp := frame(0xff, 1, 14+20+8+548)
			group := frame(0xff, 1, 300)
			copy(group, []byte{1, 0, 0x5e, 0, 0, 0xfb})
			for i, datagram := range [][]byte{
				dhcp, group, tag(dhcp, inner.TypeVLAN), tag(group, inner.TypeVLAN),
				tag(dhcp, inner.TypeVLAN, inner.TypeQinQ), tag(frame(0xff, 1, 1514),
					inner.TypeVLAN, inner.TypeQinQ),
			} {
				a.send(inner.VNet{}, datagram)
				for _, s := range others {
					if _, got := s.receive(); !bytes.Equal(got, datagram) {
						t.Errorf("frame %d: %x came", i, got[:20])
					}
				}
			}
			answer := tag(frame(1, 2, 100), inner.TypeVLAN)
			others[0].send(inner.VNet{}, answer)
			if _, got := a.receive(); !bytes.Equal(got, answer) {
				t.Errorf("%x came", got[:20])
			}
			if n := len(others[0].queue.out) + len(others[1].queue.out); n != 0 {
				t.Errorf("%d frames more", n)
			}
		})
	}
}

// TestFloodOfAddresses: a flood of sources from a peer, and one from inside, leave the table as
// long as it may be, and each drives out none but its own.
func TestFloodOfAddresses(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Over: OverRC, Addresses: 40, Suppress: true}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	hello := frame(0xff, 1, 60) // who is inside
	a.send(inner.VNet{}, hello)
	if _, got := b.receive(); !bytes.Equal(got, hello) {
		t.Fatalf("%x came", got)
	}
	const count = 500
	for i := range count {
		claim := arp(1, 2, 2)
		binary.BigEndian.PutUint16(claim[9:], uint16(i+1000))
		copy(claim[22:], claim[6:12])
		copy(claim[28:], []byte{10, 1, byte(i >> 8), byte(i)})
		b.send(inner.VNet{}, claim)
		if _, got := a.receive(); !bytes.Equal(got, claim) {
			t.Fatalf("%x came", got)
		}
	}
	if s := a.Stats(); s.Addresses > 40 || s.Neighbours > 40 || s.Evicted < count-40 {
		t.Errorf("%d addresses, %d neighbours, %d driven out", s.Addresses, s.Neighbours, s.Evicted)
	}
	for i := range byte(3) { // it is for who is inside, of whom the table still knows
		b.send(inner.VNet{}, frame(1, 2, 61+int(i)))
		if _, got := a.receive(); len(got) != 61+int(i) {
			t.Errorf("%x came", got)
		}
	}
	a.bridge.Lock()
	port, ok := a.table.Find(a.dev.Now(), [6]byte(hello[6:12]))
	a.bridge.Unlock()
	if !ok || port != 0 {
		t.Errorf("who is inside is at %d (%t)", port, ok)
	}
}
