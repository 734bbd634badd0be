package engine_test

import (
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// segments is a P_Key table: the default partition, a full member of one and a limited member
// of another.
var segments = roce.PKeyTable{wire.DefaultPKey, 0x8005, 0x0006}

// TestPKeysSeparateDatagrams: a datagram reaches a QP in the same partition, and no other; and
// not from one limited member to another.
func TestPKeysSeparateDatagrams(t *testing.T) {
	inWorlds(t, engine.Options{PKeys: segments}, func(t *testing.T, w *world) {
		const full, limited = 1, 2
		for _, c := range []struct {
			from, to uint16
			comes    bool
		}{
			{0, 0, true},
			{full, full, true},
			{limited, limited, false},
			{0, full, false},
			{full, 0, false},
			{limited, 0, false},
		} {
			a := datagramSeat(t, w.devs[0], engine.QPInit{PKeyIndex: c.from})
			b := datagramSeat(t, w.devs[1], engine.QPInit{PKeyIndex: c.to})
			before := counterOf(t, w.devs[1], "drop_bad_pkey")
			b.recv(t, 1, 0, 100)
			ah := a.handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4)
			a.send(t, a.datagram(ah, b.qp.QPN(), 10))
			w.succeed(a.cq, 1)
			if c.comes {
				w.succeed(b.cq, 1)
				continue
			}
			w.run(func() bool { return counterOf(t, w.devs[1], "drop_bad_pkey") == before+1 })
			var wcs [1]roce.Completion
			if n, err := b.cq.Poll(wcs[:]); n != 0 || err != nil {
				t.Errorf("from %d to %d: %+v (%v)", c.from, c.to, wcs[0], err)
			}
		}
	})
}

// TestPKeyOnTheWire: every packet of a connection has the P_Key at the index of its QP, its
// acknowledges too, and a limited member talks with a full one.
func TestPKeyOnTheWire(t *testing.T) {
	tap := &frameTap{}
	w := simWorldOf(t, sim.Faults{}, engine.Options{PKeys: segments, Tap: tap},
		engine.Options{PKeys: roce.PKeyTable{0x8006, 0x7fff}, Tap: tap})
	for _, c := range []struct {
		index [2]uint16
		pkeys [2]uint16
	}{
		{[2]uint16{2, 0}, [2]uint16{0x0006, 0x8006}},
		{[2]uint16{0, 1}, [2]uint16{0xffff, 0x7fff}},
	} {
		a := seatOn(t, w.devs[0], engine.QPInit{PKeyIndex: c.index[0]})
		b := seatOn(t, w.devs[1], engine.QPInit{PKeyIndex: c.index[1]})
		tap.take()
		join(t, a, b, engine.ConnectOptions{SGIDIndex: gidIPv4})
		if got := b.qp.Query().PKeyIndex; got != c.index[1] {
			t.Errorf("the QP says %d", got)
		}
		transfer(t, w, a, b, roce.OpWrite, 9000)
		transfer(t, w, b, a, roce.OpSend, 9000)
		frames := tap.take()
		for _, f := range frames {
			var p wire.Packet
			if r := p.Decode(f, nil); r != wire.OK {
				t.Fatal(r)
			}
			want := c.pkeys[0]
			if p.SrcMAC == w.devs[1].Port().MAC {
				want = c.pkeys[1]
			}
			if p.BTH.PKey != want {
				t.Errorf("%s has P_Key 0x%04x, want 0x%04x", p.BTH.Opcode, p.BTH.PKey, want)
			}
		}
		if len(frames) == 0 {
			t.Error("no frame")
		}
	}
}

// TestPKeyTable is what a device says of its table, and refuses.
func TestPKeyTable(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{PKeys: segments})
	d := w.devs[0]
	if n := d.Query().MaxPkeys; n != 3 || len(d.PKeys()) != 3 {
		t.Errorf("%d entries", n)
	}
	d.PKeys()[0] = 1 // a copy
	for i, want := range segments {
		if pkey, err := d.QueryPKey(i); pkey != want || err != nil {
			t.Errorf("entry %d is 0x%04x (%v)", i, pkey, err)
		}
		if index, err := d.PKeyIndex(want | roce.PKeyFull); int(index) != i || err != nil {
			t.Errorf("0x%04x is at %d (%v)", want, index, err)
		}
	}
	for _, index := range []int{-1, 3} {
		if _, err := d.QueryPKey(index); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("entry %d: %v", index, err)
		}
	}
	for _, pkey := range []uint16{0x0006, 0x8007, 0} {
		if _, err := d.PKeyIndex(pkey); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("0x%04x: %v", pkey, err)
		}
	}
	s := seatOn(t, d, engine.QPInit{})
	_, err := d.CreateQP(s.pd, engine.QPInit{SendCQ: s.cq, RecvCQ: s.cq, PKeyIndex: 3})
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a QP at index 3: %v", err)
	}
	err = s.qp.Modify(&roce.Attr{State: roce.StateInit, Port: 1, PKeyIndex: 3},
		roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("Modify to index 3: %v", err)
	}
	for _, bad := range []roce.PKeyTable{{}, {0x8000}, {0xffff, 0xffff}} {
		port, err := w.network.NewPort(sim.PortConfig{MAC: [6]byte{2, 0, 0, 0, 1, 0}, MTU: 1500})
		must(t, err)
		_, err = engine.OpenLink(port, port, engine.Options{PKeys: bad})
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("a table %x: %v", bad, err)
		}
	}
	def := simWorld(t, 1, sim.Faults{}, engine.Options{}).devs[0]
	if pkeys := def.PKeys(); len(pkeys) != 1 || pkeys[0] != wire.DefaultPKey {
		t.Errorf("by default %x", pkeys)
	}
}
