package roce_test

import (
	"runtime"
	"sync"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
)

// TestPostFromManyGoroutines while another one drives both queue pairs: every
// request completes once, in the order in which its poster posted it.
func TestPostFromManyGoroutines(t *testing.T) {
	const posters, each = 4, 200
	p := newRCPair(t, options{Depth: posters, CQDepth: 64, RNRRetry: 7})
	var wg sync.WaitGroup
	for poster := range posters {
		wg.Go(func() {
			for i := range each {
				wr := roce.SendWR{
					WRID: uint64(poster)<<32 | uint64(i), Opcode: roce.OpSend,
					SGList: p.ends[0].sge(8*poster, 8),
				}
				for p.ends[0].qp.PostSend(&wr) != nil && t.Context().Err() == nil {
					runtime.Gosched()
				}
			}
		})
		wg.Go(func() {
			for range each {
				wr := roce.RecvWR{SGList: p.ends[1].sge(0, 8)}
				for p.ends[1].qp.PostRecv(&wr) != nil && t.Context().Err() == nil {
					runtime.Gosched()
				}
			}
		})
	}
	var next [posters]uint64
	received := 0
	for sent := 0; sent < posters*each || received < posters*each; {
		p.step()
		for _, wc := range drain(t, p.ends[0].send) {
			from := wc.WRID >> 32
			if wc.Status != roce.StatusSuccess || wc.WRID&0xffffffff != next[from] {
				t.Fatalf("%+v, want request %d of poster %d", wc, next[from], from)
			}
			next[from]++
			sent++
		}
		received += len(drain(t, p.ends[1].recv))
	}
	wg.Wait()
}

// TestMovedUnderGoroutines: a queue pair may be given to another queue while others post to it.
func TestMovedUnderGoroutines(t *testing.T) {
	s := newUD(t, options{Type: roce.TypeGSI, Depth: 2000})
	homes := [2]*roce.Common{s.config(s.o).Common, s.config(s.o).Common}
	var counts [2]counter.Set
	var posters sync.WaitGroup
	posters.Go(func() {
		for range 1000 {
			wr := s.gram(1, 8, 0)
			if err := s.qp.PostSend(&wr); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 1000 {
		if !s.qp.Rehome(&counts[i%2], homes[i%2]) {
			t.Fatal("it did not move")
		}
	}
	posters.Wait()
}
