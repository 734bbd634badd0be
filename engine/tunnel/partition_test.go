package tunnel

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestPartitions: two tunnels on one network, each in a partition of its own, see their own
// frames alone; an end of the one that names an end of the other as its peer is not heard.
func TestPartitions(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC, OverNative} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			in := func(pkey uint16, n byte, peers ...byte) *site {
				dev, m := l.deviceIn(n, 1500, engine.Options{PKeys: roce.PKeyTable{pkey}})
				return l.siteOn(dev, m, TAP, Config{Format: formatOver(over), Over: over}, peers...)
			}
			red := []*site{in(0x8005, 1, 2, 4), in(0x8005, 2, 1)}
			blue := []*site{in(0x8006, 3, 4), in(0x8006, 4, 3, 1)}
			for _, s := range [][]*site{red, blue} {
				s[0].await("not found", func(st Stats) bool { return st.Peers[0].Up })
				s[1].await("not found", func(st Stats) bool { return st.Peers[0].Up })
			}
			for i := range byte(5) {
				for color, s := range [][]*site{red, blue} {
					hello := frame(0xff, i, 60+color)
					s[0].send(inner.VNet{}, hello)
					if _, got := s[1].receive(); !bytes.Equal(got, hello) {
						t.Fatalf("%x came", got)
					}
				}
			}
			// On a busy machine the time for all of it may be over before the last REQ is.
			err := red[0].tryOnce(red[0].peers[1])
			if !errors.Is(err, cm.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the other partition: %v", err)
			}
			for _, s := range [][]*site{red, blue} {
				if len(s[0].queue.out)+len(s[1].queue.out) != 0 {
					t.Error("a frame of the other partition came")
				}
			}
			if red[0].Stats().Peers[1].Up || blue[1].Stats().Peers[1].Up {
				t.Error("a peer of the other partition is up")
			}
		})
	}
}

// TestOtherPartition: an end whose device is in both partitions, and its tunnel in the other one,
// refuses and says why; so do two limited members.
func TestOtherPartition(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC, OverNative} {
		for name, theirs := range map[string]roce.PKeyTable{
			"other": {0x8006, 0x8005}, "limited": {0x0005, 0x8005},
		} {
			t.Run(over.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				l := newLAN(t, sim.Faults{})
				l.response = patient // it asks once
				c := Config{Format: formatOver(over), Over: over}
				ours := roce.PKeyTable{0x8005}
				if name == "limited" {
					ours = roce.PKeyTable{0x0005}
				}
				dev, m := l.deviceIn(1, 1500, engine.Options{PKeys: ours})
				a := l.siteOn(dev, m, TAP, c, 2)
				dev, m = l.deviceIn(2, 1500, engine.Options{PKeys: theirs})
				l.siteOn(dev, m, TAP, c, 1)
				err := a.tryOnce(a.peers[0])
				var mismatch *MismatchError
				if !errors.As(err, &mismatch) || mismatch.What != "P_Key" {
					t.Errorf("refused by %v", err)
				}
			})
		}
	}
}

// TestPKeyIndex: a tunnel in another partition than the first of the device. Members that are
// limited have one with a full member.
func TestPKeyIndex(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC, OverNative} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			dev, m := l.deviceIn(1, 1500, engine.Options{PKeys: roce.PKeyTable{0xffff, 0x8005}})
			c := Config{Format: formatOver(over), Over: over, PKeyIndex: 1}
			a := l.siteOn(dev, m, TAP, c, 2)
			dev, m = l.deviceIn(2, 1500, engine.Options{PKeys: roce.PKeyTable{0x0005}})
			c.PKeyIndex = 0
			b := l.siteOn(dev, m, TAP, c, 1)
			a.awaitUp()
			b.awaitUp()
			for _, s := range [][2]*site{{a, b}, {b, a}} {
				hello := frame(0xff, 1, 60)
				s[0].send(inner.VNet{}, hello)
				if _, got := s[1].receive(); !bytes.Equal(got, hello) {
					t.Errorf("%x came", got)
				}
			}
		})
	}
	l := newLAN(t, sim.Faults{})
	dev, m := l.device(1, 1500)
	c := Config{Format: encap.EoIB, PKeyIndex: 1, Peers: []Peer{{Addr: addr(2)}}}
	inside := &Inside{Kind: TAP, MTU: 1500, Queues: []Queue{newFakeQueue()}}
	if _, err := Open(dev, m, inside, c); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("an index that the table does not have: %v", err)
	}
}
