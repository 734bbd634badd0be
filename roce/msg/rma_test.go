package msg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// export gives the peer of a connection keys to memory, as an owner does.
func (n *node) export(c *Conn, b []byte) Memory {
	return n.register(c, b, mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead|mem.RemoteAtomic)
}

// start starts an operation and waits until nothing more happens.
func (d *duo) start(x *RMA) {
	d.t.Helper()
	must(d.t, d.ca.StartRMA(d.now, x))
	if err := d.ca.StartRMA(d.now, x); !errors.Is(err, ErrQueued) {
		d.t.Errorf("started twice: %v", err)
	}
	d.settle()
	if got := d.a.endpoint.NextRMA(); got != x || d.a.endpoint.NextRMA() != nil {
		d.t.Fatalf("complete: %t", got == x)
	}
}

// TestRMA writes, reads, adds and compares, beside messages, and leaves no key behind.
func TestRMA(t *testing.T) {
	d := newDuo(t, Config{Chunk: 5000, PullWindow: 5000})
	there := make([]byte, 100_000)
	remote := d.b.export(d.cb, there)
	part := func(off int) Memory { return remote.from(uint64(off)) }
	keys := len(d.a.regions)
	for range 10 { // beside these
		must(t, d.ca.Send(d.now, &Send{Protocol: Put, Pieces: [][]byte{make([]byte, 30_000)}}))
		r := &Receive{Pieces: [][]byte{make([]byte, 30_000)}}
		must(t, d.b.endpoint.Receive(d.now, r))
	}
	written := pattern(1, 60_000)
	x := &RMA{Opcode: verbs.OpWrite, Pieces: [][]byte{written}, Remote: part(16)}
	d.start(x)
	if x.Err != nil || !bytes.Equal(there[16:][:len(written)], written) || there[15] != 0 {
		t.Fatalf("it was not written: %v", x.Err)
	}
	read := make([]byte, 50_000)
	x = &RMA{Opcode: verbs.OpRead, Pieces: [][]byte{read}, Remote: part(17)}
	d.start(x)
	if x.Err != nil || !bytes.Equal(read, there[17:][:len(read)]) {
		t.Fatalf("it was not read: %v", x.Err)
	}
	word := binary.NativeEndian.Uint64(there)
	old := make([]byte, 8)
	x = &RMA{Opcode: verbs.OpFetchAdd, Pieces: [][]byte{old}, Remote: part(0), CompareAdd: 5}
	d.start(x)
	if binary.NativeEndian.Uint64(old) != word || binary.NativeEndian.Uint64(there) != word+5 {
		t.Errorf("%x became %x", old, there[:8])
	}
	x.Opcode, x.CompareAdd, x.Swap = verbs.OpCmpSwap, word+5, 77
	d.start(x)
	if binary.NativeEndian.Uint64(old) != word+5 || binary.NativeEndian.Uint64(there) != 77 {
		t.Errorf("%x became %x", old, there[:8])
	}
	for n := 0; d.a.endpoint.NextSent() != nil; n++ {
		if d.b.endpoint.NextReceived() == nil {
			t.Fatalf("%d messages arrived", n)
		}
	}
	if len(d.a.regions) != keys {
		t.Errorf("%d regions, there were %d", len(d.a.regions), keys)
	}
}

// TestRMARefused: what is no such operation, or cannot be had, is refused and changes nothing.
func TestRMARefused(t *testing.T) {
	d := newDuo(t, Config{})
	eight := [][]byte{make([]byte, 8)}
	for name, x := range map[string]*RMA{
		"SEND":             {Opcode: verbs.OpSend, Pieces: eight},
		"nothing":          {Opcode: verbs.OpWrite},
		"atomic of 4":      {Opcode: verbs.OpFetchAdd, Pieces: [][]byte{make([]byte, 4)}},
		"atomic of 8 by 2": {Opcode: verbs.OpCmpSwap, Pieces: [][]byte{make([]byte, 8), {1}}},
	} {
		if err := d.ca.StartRMA(d.now, x); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.stingy = 100
	x := &RMA{Opcode: verbs.OpWrite, Pieces: eight}
	if d.start(x); !errors.Is(x.Err, errNoMemory) || d.ca.over() {
		t.Errorf("without memory: %v, %v", x.Err, d.ca.Err())
	}
	d.stingy = 0
	d.ca.Close(d.now)
	if err := d.ca.StartRMA(d.now, x); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestRMAEnds has the connection end at any moment of an operation: in order it waits for it, else
// the operation comes back with the error, once no key of its memory is in use.
func TestRMAEnds(t *testing.T) {
	wrong := errors.New("wrong")
	for steps := range 60 {
		for _, orderly := range []bool{true, false} {
			d := newDuo(t, Config{Chunk: 1000, PullWindow: 1000})
			there := make([]byte, 5000)
			x := &RMA{
				Opcode: verbs.OpWrite, Pieces: [][]byte{pattern(1, 5000)},
				Remote: d.b.export(d.cb, there),
			}
			keys := len(d.a.regions)
			must(t, d.ca.StartRMA(d.now, x))
			for range steps {
				d.step()
			}
			if orderly {
				d.cb.Close(d.now)
				d.ca.Close(d.now)
			} else {
				d.ca.Abort(d.now, wrong)
				if d.ca.rma.waiting.Len() != 0 {
					t.Fatal("something waits on a connection that is over")
				}
			}
			d.settle()
			if got := d.a.endpoint.NextRMA(); got != x {
				t.Fatalf("after %d steps: it is not complete", steps)
			}
			whole := bytes.Equal(there, x.Pieces[0])
			if x.Err == nil && !whole || orderly && x.Err != nil ||
				x.Err != nil && !errors.Is(x.Err, wrong) {
				t.Fatalf("after %d steps, in order %t: %v, whole %t", steps, orderly, x.Err, whole)
			}
			if len(d.a.regions) > keys || d.ca.rma.open != 0 {
				t.Fatalf("%d regions, %d operations", len(d.a.regions), d.ca.rma.open)
			}
		}
	}
}

// TestRMAOfALostRail: what was being read with a rail that is lost is read by another one; what
// writes is not done twice, and says so.
func TestRMAOfALostRail(t *testing.T) {
	for _, op := range []verbs.Opcode{verbs.OpRead, verbs.OpWrite, verbs.OpFetchAdd} {
		x := newTwo(t, Config{})
		there, here := pattern(1, 1<<20), make([]byte, 1<<20)
		if op == verbs.OpFetchAdd {
			here = here[:8]
		}
		rma := &RMA{
			Opcode: op, Pieces: [][]byte{here}, CompareAdd: 1, Remote: x.b.export(x.cb, there),
		}
		keys := len(x.a.regions)
		must(t, x.ca.StartRMA(x.now, rma))
		for rma.flying == 0 {
			x.step()
		}
		var cut *pipe
		for r := range x.ca.live() {
			for f := range r.flights.all() {
				if f.rma == rma {
					cut = r.User.(*pipe)
				}
			}
		}
		cut.cut, cut.peer.cut = true, true
		x.settle()
		if got := x.a.endpoint.NextRMA(); got != rma || x.ca.over() {
			t.Fatalf("%v: complete %t, %v", op, got == rma, x.ca.Err())
		}
		switch {
		case op == verbs.OpRead && (rma.Err != nil || !bytes.Equal(here, there)):
			t.Errorf("%v: %v", op, rma.Err)
		case rma.Err == nil && op == verbs.OpFetchAdd && there[0] == pattern(1, 8)[0]+1:
			// It was done, and its answer was here, before the rail was cut.
		case op != verbs.OpRead && !errors.Is(rma.Err, ErrUnknown):
			t.Errorf("%v: %v", op, rma.Err)
		}
		if len(x.a.regions) != keys {
			t.Errorf("%v: %d regions, there were %d", op, len(x.a.regions), keys)
		}
	}
}
