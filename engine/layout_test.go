package engine_test

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

const (
	relaid     = mem.ChangeTranslation | mem.ChangeAccess
	laidRights = mem.LocalWrite | mem.RemoteRead | mem.RemoteWrite
)

// A matrix is the front of a seat's region.
const (
	matrixRows    = 300
	matrixColumns = 26
	element       = 16
	matrixRow     = matrixColumns * element
)

// laid makes a key with one block.
func laid(t *testing.T, s *seat, repeat uint64, block mem.Block) *engine.MR {
	t.Helper()
	r, err := s.dev.RegIndirect(s.pd, 2)
	if err != nil {
		t.Fatal(err)
	}
	err = r.ReregInterleaved(relaid, nil, laidRights, []uint64{repeat}, []mem.Block{block})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// column is a column of the matrix of a seat.
func column(t *testing.T, s *seat, at int) *engine.MR {
	t.Helper()
	return laid(t, s, matrixRows, s.mr.Block(uint64(at*element), element, matrixRow))
}

// cells are the elements of a column, copied by hand.
func cells(s *seat, at int) (all []byte) {
	for row := range matrixRows {
		all = append(all, s.mr.Bytes()[row*matrixRow+at*element:][:element]...)
	}
	return all
}

// TestLayoutMatrixColumns sends a column of a matrix into a column of another,
// writes one and reads one, each as one address, one key and one length.
func TestLayoutMatrixColumns(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		for i := range a.mr.Bytes() {
			a.mr.Bytes()[i], b.mr.Bytes()[i] = byte(i*7+i>>8), byte(i*3)
		}
		const n = matrixRows * element
		here, there := column(t, a, 3), column(t, b, 25)
		if here.Len() != n {
			t.Fatalf("%d bytes, want %d", here.Len(), n)
		}
		want := bytes.Clone(b.mr.Bytes())
		for row := range matrixRows {
			copy(want[row*matrixRow+25*element:][:element], cells(a, 3)[row*element:])
		}
		for _, op := range []roce.Opcode{roce.OpSend, roce.OpWrite} {
			for row := range matrixRows {
				clear(b.mr.Bytes()[row*matrixRow+25*element:][:element])
			}
			if err := b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{there.SGE(0, n)}}); err != nil {
				t.Fatal(err)
			}
			wr := roce.SendWR{
				Opcode: op, Flags: roce.SendSignaled, SGList: []roce.SGE{here.SGE(0, n)},
				RemoteAddr: there.Addr(), RKey: there.RKey(),
			}
			a.send(t, wr)
			w.succeed(a.cq, 1)
			if op == roce.OpSend {
				w.succeed(b.cq, 1)
			}
			if !bytes.Equal(b.mr.Bytes(), want) {
				t.Errorf("%s: the matrix of the peer is not what it should be", op)
			}
		}
		a.send(t, roce.SendWR{
			Opcode: roce.OpRead, Flags: roce.SendSignaled,
			SGList:     []roce.SGE{column(t, a, 0).SGE(0, n)},
			RemoteAddr: there.Addr(), RKey: there.RKey(),
		})
		w.succeed(a.cq, 1)
		if !bytes.Equal(cells(a, 0), cells(a, 3)) {
			t.Error("the column that was read is not the one that was written")
		}
	})
}

// TestLayoutOfSeveralRegions: regions of several sizes are one message.
func TestLayoutOfSeveralRegions(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	var pieces []mem.Piece
	var want []byte
	for i := range 100 {
		buf := bytes.Repeat([]byte{byte(i + 1)}, 2*i+1)
		mr, err := w.devs[0].RegMR(a.pd, buf, 0)
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, mr.Piece(1, uint64(i)))
		want = append(want, buf[:i]...)
	}
	r, err := w.devs[0].RegIndirect(a.pd, len(pieces))
	if err != nil {
		t.Fatal(err)
	}
	l, err := mem.NewList(pieces)
	if err != nil {
		t.Fatal(err)
	}
	a.send(t, r.UMR(l, 0))
	wr := writeTo(a, b, roce.OpWrite, 0)
	wr.SGList = []roce.SGE{r.SGE(0, len(want))}
	a.send(t, wr)
	w.succeed(a.cq, 1)
	if got := b.mr.Bytes()[:len(want)]; !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	a.send(t, roce.SendWR{
		Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: r.LKey(),
	})
	w.succeed(a.cq, 1)
	if err := r.Deregister(); err != nil {
		t.Error(err)
	}
}

// TestLayoutByCall gives an ordinary region layouts, another domain, and counts
// who depends on what.
func TestLayoutByCall(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	dev := w.devs[0]
	one, two := dev.AllocPD(), dev.AllocPD()
	reg := func(pd *engine.PD) *engine.MR {
		mr, err := dev.RegMR(pd, make([]byte, 64), rights)
		if err != nil {
			t.Fatal(err)
		}
		return mr
	}
	m, inOne, inTwo := reg(one), reg(one), reg(two)
	key, addr := m.LKey(), m.Addr()
	must := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	piece := func(r *engine.MR) []mem.Piece { return []mem.Piece{r.Piece(8, 8), r.Piece(0, 8)} }
	must(m.ReregSG(mem.ChangeTranslation, nil, 0, piece(inOne)), nil)
	if m.LKey() != key || m.Addr() != addr || m.Len() != 16 || m.Bytes() != nil {
		t.Errorf("key %#x, %d bytes at %#x", m.LKey(), m.Len(), m.Addr())
	}
	must(inOne.Deregister(), mem.ErrBusy)
	must(m.ReregSG(mem.ChangeTranslation, nil, 0, nil), mem.ErrLayout)
	must(m.ReregInterleaved(mem.ChangeTranslation, nil, 0, nil, nil), mem.ErrLayout)
	must(m.ReregSG(mem.ChangeTranslation|mem.ChangePD, two, 0, piece(inOne)), mem.ErrLayout)
	must(m.ReregSG(mem.ChangeTranslation|mem.ChangePD, nil, 0, piece(inOne)), roce.ErrInvalid)
	must(inOne.Deregister(), mem.ErrBusy)
	must(m.ReregSG(mem.ChangeTranslation|mem.ChangePD, two, 0, piece(inTwo)), nil)
	must(inOne.Deregister(), nil)
	must(one.Close(), nil) // nothing is of it any more
	must(inTwo.Deregister(), mem.ErrBusy)
	must(m.Deregister(), nil)
	must(inTwo.Deregister(), nil)
	must(two.Close(), nil)
	must(m.ReregSG(mem.ChangeTranslation, nil, 0, piece(inTwo)), mem.ErrNotRegistered)
	if _, err := dev.RegIndirect(dev.AllocPD(), 0); !errors.Is(err, mem.ErrEntries) {
		t.Error(err)
	}
}

// TestLayoutReplacedUnderTraffic replaces the layout that a peer writes through, by
// the call, while it writes, and takes the regions below away: none is written to
// after that, and each message landed in one of them, or was refused.
func TestLayoutReplacedUnderTraffic(t *testing.T) {
	const size, messages = 256, 3000
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	for i := range size {
		a.mr.Bytes()[i] = 0x5a
	}
	target := laid(t, b, size, b.mr.Block(0, 1, 2))
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		var last *engine.MR
		for i := 0; !done.Load(); i++ {
			mr, err := b.dev.RegMR(b.pd, make([]byte, 2*size), rights)
			if err != nil {
				t.Error(err)
				return
			}
			if i%2 == 0 {
				err = target.ReregSG(mem.ChangeTranslation, nil, 0,
					[]mem.Piece{mr.Piece(size, size-1), mr.Piece(3, 1)})
			} else {
				err = target.ReregInterleaved(mem.ChangeTranslation, nil, 0, []uint64{size},
					[]mem.Block{mr.Block(0, 1, 2)})
			}
			if err != nil {
				t.Error(err)
				return
			}
			if last != nil {
				buf := last.Bytes()
				if err := last.Deregister(); err != nil {
					t.Error(err)
					return
				}
				if n := bytes.Count(buf, []byte{0x5a}); n != 0 && n != size {
					t.Errorf("%d bytes of a message of %d", n, size)
				}
			}
			last = mr
		}
	})
	for range messages {
		wr := writeTo(a, b, roce.OpWrite, size)
		wr.RemoteAddr, wr.RKey = target.Addr(), target.RKey()
		a.send(t, wr)
		switch wc := w.take(a.cq, 1)[0]; wc.Status {
		case roce.StatusSuccess:
		case roce.StatusRemAccessErr:
			// The key was changed between the two looks at it that one packet takes.
			for _, s := range []*seat{a, b} {
				err := s.qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState)
				if err != nil {
					t.Fatal(err)
				}
			}
			join(t, a, b, engine.ConnectOptions{})
		default:
			t.Fatal(wc.Status)
		}
	}
	done.Store(true)
	wg.Wait()
}
