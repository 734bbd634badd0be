package engine_test

import (
	"fmt"
	"os"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// fileRights are those of regions of files here.
const fileRights = rights | mem.FlushPersistent | mem.MWBind

// regFile registers so many pages of a new file.
func regFile(t *testing.T, s *seat, pages int) (*engine.MR, *os.File) {
	t.Helper()
	f := odpFile(t, pages)
	mr, err := s.dev.RegFile(s.pd, f, 0, pages*odpPage, fileRights)
	must(t, err)
	t.Cleanup(func() { must(t, mr.Deregister()) })
	return mr, f
}

// cut is where the tests look at a file of four pages that lost all but the first.
var cut = 2 * odpPage

// A view is a way to name the bytes of a file region from cut on.
type fileView struct {
	name string
	make func(t *testing.T, w *world, s *seat, mr *engine.MR) (key uint32, addr uint64)
}

// fileViews are the region's own key, layouts over it, a window, and what Rereg makes of
// it.
var fileViews = []fileView{
	{"region", func(_ *testing.T, _ *world, _ *seat, mr *engine.MR) (uint32, uint64) {
		return mr.LKey(), mr.Addr() + uint64(cut)
	}},
	{"list", func(t *testing.T, _ *world, s *seat, mr *engine.MR) (uint32, uint64) {
		r, err := s.dev.RegIndirect(s.pd, 2)
		must(t, err)
		must(t, r.ReregSG(relaid, nil, rights, []mem.Piece{
			mr.Piece(8, 8), mr.Piece(uint64(cut), 64),
		}))
		t.Cleanup(func() { must(t, r.Deregister()) })
		return r.LKey(), 8
	}},
	{"column", func(t *testing.T, _ *world, s *seat, mr *engine.MR) (uint32, uint64) {
		r, err := s.dev.RegIndirect(s.pd, 1)
		must(t, err)
		must(t, r.ReregInterleaved(relaid, nil, rights, []uint64{8}, []mem.Block{
			mr.Block(uint64(cut), 8, 16),
		}))
		t.Cleanup(func() { must(t, r.Deregister()) })
		return r.LKey(), 0
	}},
	{"part", func(t *testing.T, _ *world, _ *seat, mr *engine.MR) (uint32, uint64) {
		part := mr.Bytes()[cut:][:64:64]
		must(t, mr.Rereg(relaid, part, nil, rights))
		return mr.LKey(), mr.Addr()
	}},
}

// TestRegFileCutOff: a file gets shorter after its registration. Every operation that
// comes to what is gone is refused, at either end, and the process goes on; with the file
// as long as before the next one finds it.
func TestRegFileCutOff(t *testing.T) {
	for _, v := range fileViews {
		t.Run(v.name, func(t *testing.T) {
			inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
				a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
				join(t, a, b, engine.ConnectOptions{})
				for _, op := range []roce.Opcode{
					roce.OpWrite, roce.OpWriteImm, roce.OpRead, roce.OpFetchAdd, roce.OpCmpSwap,
					roce.OpAtomicWrite,
				} {
					mr, f := regFile(t, b, 4)
					key, addr := v.make(t, w, b, mr)
					wr := through(a, op, key, addr, 8)
					if op == roce.OpWriteImm {
						b.recv(t, 1, 0, 8)
					}
					must(t, f.Truncate(int64(odpPage)))
					before := counterOf(t, b.dev, "page_gone")
					w.refused(a, wr, roce.StatusRemAccessErr)
					w.learns(b, op == roce.OpWriteImm)
					if counterOf(t, b.dev, "page_gone") == before {
						t.Errorf("%s: page_gone stays", op)
					}
					rejoin(t, a, b)
					w.drop(a, b)
					must(t, f.Truncate(int64(4*odpPage)))
					if op == roce.OpWriteImm {
						b.recv(t, 1, 0, 8)
					}
					a.send(t, wr)
					w.succeed(a.cq, 1)
					w.drop(a, b)
				}
			})
		})
	}
}

// learns wants the owner of memory that a peer did not get told so: by the receive that
// the message took, or by an event where it took none.
func (w *world) learns(s *seat, receive bool) {
	w.t.Helper()
	if !receive {
		if e := w.event(s.dev); e.Type != roce.EventQPAccessErr {
			w.t.Errorf("event %s", e.Type)
		}
		return
	}
	if wc := w.take(s.cq, 1)[0]; wc.Status != roce.StatusLocAccessErr {
		w.t.Errorf("the receive ended with %s", wc.Status)
	}
}

// drop takes the completions that there are of two seats.
func (w *world) drop(seats ...*seat) {
	w.t.Helper()
	for _, s := range seats {
		var wcs [16]roce.Completion
		for n := 1; n > 0; {
			var err error
			n, err = s.cq.Poll(wcs[:])
			must(w.t, err)
		}
	}
}

// TestRegFileCutOffAtRequester is TestRegFileCutOff for what the owner's work requests
// name: data of SEND and WRITE, results of READ and atomics, receives.
func TestRegFileCutOffAtRequester(t *testing.T) {
	for _, v := range fileViews {
		t.Run(v.name, func(t *testing.T) {
			w := simWorld(t, 2, sim.Faults{}, engine.Options{})
			for _, op := range []roce.Opcode{
				roce.OpSend, roce.OpWrite, roce.OpRead, roce.OpFetchAdd, roce.OpAtomicWrite,
			} {
				a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
				join(t, a, b, engine.ConnectOptions{})
				mr, f := regFile(t, a, 4)
				key, addr := v.make(t, w, a, mr)
				b.recv(t, 1, 0, 8)
				must(t, f.Truncate(int64(odpPage)))
				wr := writeTo(a, b, op, 8)
				wr.SGList = []roce.SGE{{Addr: addr, Length: 8, LKey: key}}
				w.refused(a, wr, roce.StatusLocProtErr)
			}
			a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
			join(t, a, b, engine.ConnectOptions{})
			mr, f := regFile(t, b, 4)
			key, addr := v.make(t, w, b, mr)
			must(t, b.qp.PostRecv(&roce.RecvWR{
				SGList: []roce.SGE{{Addr: addr, Length: 8, LKey: key}},
			}))
			must(t, f.Truncate(int64(odpPage)))
			w.refused(a, writeTo(a, b, roce.OpSend, 8), roce.StatusRemOpErr)
			if wc := w.take(b.cq, 1)[0]; wc.Status != roce.StatusLocProtErr {
				t.Errorf("the receive ended with %s", wc.Status)
			}
		})
	}
}

// TestRegFileCutOffDatagrams is the same for datagrams, whose receiver tells nobody.
func TestRegFileCutOffDatagrams(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := datagramSeat(t, w.devs[0], engine.QPInit{}), datagramSeat(t, w.devs[1], engine.QPInit{})
	ah := a.handle(t, b.dev.GIDs()[gidIPv4], gidIPv4)
	mr, f := regFile(t, b, 4)
	must(t, b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{mr.SGE(cut, grhLen+8)}}))
	must(t, f.Truncate(int64(odpPage)))
	a.send(t, a.datagram(ah, b.qp.QPN(), 8))
	w.succeed(a.cq, 1)
	if wc := w.take(b.cq, 1)[0]; wc.Status != roce.StatusLocProtErr {
		t.Errorf("the receive ended with %s", wc.Status)
	}
	mr, f = regFile(t, a, 4)
	must(t, f.Truncate(int64(odpPage)))
	wr := a.datagram(ah, b.qp.QPN(), 8)
	wr.SGList = []roce.SGE{mr.SGE(cut, 8)}
	w.refused(a, wr, roce.StatusLocProtErr)
}

// TestRegFileCutOffUnderWay cuts the file off in the middle of a message, in either
// direction.
func TestRegFileCutOffUnderWay(t *testing.T) {
	for _, op := range []roce.Opcode{roce.OpSend, roce.OpWrite, roce.OpRead} {
		var files []*os.File
		x := newTransitIn(t, op, func(s *seat) (*engine.MR, error) {
			mr, f := regFile(t, s, transitSize/odpPage)
			files = append(files, f)
			return mr, nil
		})
		must(t, files[1].Truncate(int64(odpPage)))
		want := roce.StatusRemAccessErr
		if op == roce.OpSend {
			want = roce.StatusRemOpErr
		}
		if wc := x.w.take(x.a.cq, 1)[0]; wc.Status != want {
			t.Errorf("%s: %s, want %s", op, wc.Status, want)
		}
		x = newTransitIn(t, op, func(s *seat) (*engine.MR, error) {
			mr, f := regFile(t, s, transitSize/odpPage)
			files = append(files, f)
			return mr, nil
		})
		must(t, files[2].Truncate(int64(odpPage)))
		if wc := x.w.take(x.a.cq, 1)[0]; wc.Status != roce.StatusLocProtErr {
			t.Errorf("%s: %s when our own file was cut off", op, wc.Status)
		}
	}
}

// TestFlushOfFileCutOff: a FLUSH to persistence of what the file has lost is not told to
// have been done, also where the last page has room for it still.
func TestFlushOfFileCutOff(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	for _, tt := range []struct {
		size    int
		addr, n uint64
		whole   bool
		want    roce.Status
	}{
		{4 * odpPage, uint64(cut), 8, false, roce.StatusSuccess},
		{4 * odpPage, 0, 0, true, roce.StatusSuccess},
		{cut + 8, uint64(cut), 8, false, roce.StatusSuccess},
		{cut + 7, uint64(cut), 8, false, roce.StatusRemOpErr},
		{odpPage, uint64(cut), 8, false, roce.StatusRemOpErr},
		{4*odpPage - 1, 0, 0, true, roce.StatusRemOpErr},
	} {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		must(t, b.qp.Modify(&roce.Attr{Access: rights | mem.FlushPersistent}, roce.AttrAccess))
		mr, f := regFile(t, b, 4)
		must(t, f.Truncate(int64(tt.size)))
		a.send(t, roce.SendWR{
			Opcode: roce.OpFlush, Flags: roce.SendSignaled, RemoteAddr: mr.Addr() + tt.addr,
			RKey: mr.RKey(), Flush: wire.FlushPersistent, FlushLength: uint32(tt.n),
			FlushRegion: tt.whole,
		})
		if wc := w.take(a.cq, 1)[0]; wc.Status != tt.want {
			t.Errorf("%s: %s, want %s", fmt.Sprint(tt), wc.Status, tt.want)
		}
	}
}
