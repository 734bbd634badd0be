package queue

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// newSRQ returns an SRQ with this much room, and a list of its events.
func newSRQ(t testing.TB, maxWR, maxSGE int) (s *SRQ, events *[]verbs.Event) {
	t.Helper()
	events = new([]verbs.Event)
	s, err := NewSRQ(7, SRQConfig{
		Domain: new(mem.Domain), MaxWR: maxWR, MaxSGE: maxSGE,
		OnEvent: func(e verbs.Event) { *events = append(*events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, events
}

func TestNewSRQ(t *testing.T) {
	d := new(mem.Domain)
	for _, tt := range []struct {
		name string
		num  uint32
		c    SRQConfig
		want string // of the error, "" for none
	}{
		{"smallest", 0, SRQConfig{Domain: d, MaxWR: 1, MaxSGE: 1}, ""},
		{"largest", 1<<24 - 1, SRQConfig{Domain: d, MaxWR: MaxWR, MaxSGE: MaxSGE}, ""},
		{"number", 1 << 24, SRQConfig{Domain: d, MaxWR: 1, MaxSGE: 1}, "SRQ number"},
		{"domain", 1, SRQConfig{MaxWR: 1, MaxSGE: 1}, "protection domain"},
		{"no depth", 1, SRQConfig{Domain: d, MaxSGE: 1}, "SRQ depth 0"},
		{"depth", 1, SRQConfig{Domain: d, MaxWR: MaxWR + 1, MaxSGE: 1}, "SRQ depth"},
		{"no pieces", 1, SRQConfig{Domain: d, MaxWR: 1}, "0 SRQ SGEs"},
		{"pieces", 1, SRQConfig{Domain: d, MaxWR: 1, MaxSGE: MaxSGE + 1}, "SRQ SGEs"},
	} {
		s, err := NewSRQ(tt.num, tt.c)
		if tt.want != "" {
			if !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if s.Num() != tt.num || s.Domain() != d || s.MaxSGE() != tt.c.MaxSGE {
			t.Errorf("%s: is 0x%06x with %d SGEs", tt.name, s.Num(), s.MaxSGE())
		}
		a, posted := s.Query()
		if want := (SRQAttr{MaxWR: tt.c.MaxWR}); a != want || posted != 0 {
			t.Errorf("%s: %+v with %d posted", tt.name, a, posted)
		}
	}
}

// TestSRQPostRefuses and changes nothing.
func TestSRQPostRefuses(t *testing.T) {
	s, _ := newSRQ(t, 3, 2)
	half := verbs.SGE{Length: verbs.MaxMessage / 2}
	for _, tt := range []struct {
		name string
		list []verbs.SGE
		want error
	}{
		{"too many pieces", make([]verbs.SGE, 3), verbs.ErrInvalid},
		{"too long", []verbs.SGE{half, {Length: verbs.MaxMessage/2 + 1}}, verbs.ErrInvalid},
		{"longest", []verbs.SGE{half, half}, nil},
		{"empty", nil, nil},
		{"last place", make([]verbs.SGE, 2), nil},
		{"full", nil, verbs.ErrQueueFull}, // though the ring has four places
		{"too many pieces, and full", make([]verbs.SGE, 3), verbs.ErrInvalid},
	} {
		_, before := s.Query()
		err := s.PostRecv(&verbs.RecvWR{SGList: tt.list})
		_, after := s.Query()
		if !errors.Is(err, tt.want) || (after > before) != (err == nil) {
			t.Errorf("%s: %v, %d posted, were %d", tt.name, err, after, before)
		}
	}
}

// TestSRQLimit is raised once, by the take that leaves less than the limit.
func TestSRQLimit(t *testing.T) {
	for _, tt := range []struct {
		limit, posted int
		want          int // the take that raises it, counted from 1; 0 for none
	}{
		{0, 4, 0}, {1, 4, 4}, {2, 4, 3}, {4, 4, 1}, {8, 4, 1}, {3, 3, 1}, {2, 1, 1}, {1, 0, 0},
	} {
		s, events := newSRQ(t, 8, 1)
		if err := s.Modify(SRQAttr{Limit: tt.limit}, SRQAttrLimit); err != nil {
			t.Fatal(err)
		}
		for range tt.posted {
			if err := s.PostRecv(&verbs.RecvWR{}); err != nil {
				t.Fatal(err)
			}
		}
		if len(*events) != 0 {
			t.Errorf("limit %d: an event before anything was taken", tt.limit)
		}
		for n := 1; n <= tt.posted+1; n++ {
			s.Take(make([]verbs.SGE, 1))
			a, _ := s.Query()
			want, limit := 0, tt.limit
			if tt.want != 0 && n >= tt.want {
				want, limit = 1, 0
			}
			if len(*events) != want || a.Limit != limit {
				t.Errorf("limit %d of %d, take %d: %d events, limit is %d",
					tt.limit, tt.posted, n, len(*events), a.Limit)
			}
		}
		for _, e := range *events {
			if e != verbs.EventSRQLimitReached {
				t.Errorf("event %s", e)
			}
		}
	}
}

// TestSRQEventHoldsNoLock: the event may post, which is what it is for.
func TestSRQEventHoldsNoLock(t *testing.T) {
	var s *SRQ
	s, err := NewSRQ(7, SRQConfig{
		Domain: new(mem.Domain), MaxWR: 4, MaxSGE: 1,
		OnEvent: func(verbs.Event) {
			if err := s.PostRecv(&verbs.RecvWR{WRID: 2}); err != nil {
				t.Error(err)
			}
			if err := s.Modify(SRQAttr{Limit: 1}, SRQAttrLimit); err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Modify(SRQAttr{Limit: 1}, SRQAttrLimit); err != nil {
		t.Fatal(err)
	}
	if err := s.PostRecv(&verbs.RecvWR{WRID: 1}); err != nil {
		t.Fatal(err)
	}
	for want := range uint64(2) {
		if w, ok := s.Take(make([]verbs.SGE, 1)); !ok || w.WRID != want+1 {
			t.Errorf("took %+v, %t", w, ok)
		}
	}
	if a, posted := s.Query(); a.Limit != 1 || posted != 1 {
		t.Errorf("limit %d, %d posted", a.Limit, posted)
	}
}

// TestSRQModel posts, takes, resizes and arms in any order, and compares with a
// list.
func TestSRQModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxSGE := rapid.IntRange(1, 3).Draw(t, "max SGE")
		depth := rapid.IntRange(1, 9)
		var model []verbs.RecvWR
		attr, events, id := SRQAttr{MaxWR: depth.Draw(t, "depth")}, 0, uint64(0)
		got := 0
		s, err := NewSRQ(1, SRQConfig{
			Domain: new(mem.Domain), MaxWR: attr.MaxWR, MaxSGE: maxSGE,
			OnEvent: func(verbs.Event) { got++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		// Counters wrap soon.
		start := uint32(math.MaxUint32 - rapid.Uint32Range(0, 20).Draw(t, "before the wrap"))
		s.rq.head.Store(start)
		s.rq.tail.Store(start)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if a, posted := s.Query(); a != attr || posted != len(model) || got != events {
					t.Fatalf("%+v, %d posted, %d events, want %+v, %d, %d",
						a, posted, got, attr, len(model), events)
				}
			},
			"post": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "receives") {
					id++
					pieces := rapid.IntRange(0, maxSGE).Draw(t, "SGEs")
					wr := verbs.RecvWR{WRID: id, SGList: make([]verbs.SGE, pieces)}
					for i := range wr.SGList {
						wr.SGList[i] = verbs.SGE{Addr: id, Length: uint32(i), LKey: uint32(id)}
					}
					err := s.PostRecv(&wr)
					full := len(model) == attr.MaxWR
					if errors.Is(err, verbs.ErrQueueFull) != full {
						t.Fatal(err)
					}
					if err == nil {
						model = append(model, wr)
					}
				}
			},
			"take": func(t *rapid.T) {
				list := make([]verbs.SGE, maxSGE)
				w, ok := s.Take(list)
				if ok != (len(model) > 0) {
					t.Fatalf("took %t of %d", ok, len(model))
				}
				if !ok {
					return
				}
				want, length := model[0], uint32(0)
				for _, piece := range want.SGList {
					length += piece.Length
				}
				if w.WRID != want.WRID || w.Length != length ||
					!slices.Equal(list[:w.NumSGE], want.SGList) {
					t.Fatalf("took %+v, %v, want %+v", w, list, want)
				}
				if model = model[1:]; len(model) < attr.Limit {
					attr.Limit = 0
					events++
				}
			},
			"modify": func(t *rapid.T) {
				mask := SRQAttrMask(rapid.IntRange(0, 7).Draw(t, "mask"))
				a := SRQAttr{
					MaxWR: rapid.IntRange(-1, 9).Draw(t, "depth"),
					Limit: rapid.IntRange(-1, 9).Draw(t, "limit"),
				}
				next := attr
				if mask&1 != 0 {
					next.MaxWR = a.MaxWR
				}
				if mask&2 != 0 {
					next.Limit = a.Limit
				}
				ok := mask <= 3 && next.MaxWR >= 1 && next.MaxWR >= len(model) &&
					next.Limit >= 0 && next.Limit <= next.MaxWR
				if err := s.Modify(a, mask); errors.Is(err, verbs.ErrInvalid) == ok {
					t.Fatalf("%+v, mask %d, %d posted: %v", a, mask, len(model), err)
				}
				if ok {
					attr = next
				}
			},
		})
	})
}

// TestSRQFromManyGoroutines: what many post, many take once each while the SRQ is
// resized, in the order of each poster as far as one taker sees it.
func TestSRQFromManyGoroutines(t *testing.T) {
	const posters, takers, each = 3, 3, 3000
	s, err := NewSRQ(1, SRQConfig{Domain: new(mem.Domain), MaxWR: 32, MaxSGE: 2})
	if err != nil {
		t.Fatal(err)
	}
	var taken [posters * each]atomic.Int32
	var left atomic.Int64
	left.Store(posters * each)
	var wg sync.WaitGroup
	for p := range posters {
		wg.Go(func() {
			for i := range each {
				id := uint64(p*each + i)
				wr := verbs.RecvWR{WRID: id, SGList: []verbs.SGE{{Addr: id}, {Addr: ^id}}}
				for s.PostRecv(&wr) != nil {
					runtime.Gosched()
				}
			}
		})
	}
	for range takers {
		wg.Go(func() {
			var last [posters]uint64
			list := make([]verbs.SGE, 2)
			for left.Load() > 0 {
				w, ok := s.Take(list)
				if !ok {
					runtime.Gosched()
					continue
				}
				left.Add(-1)
				taken[w.WRID].Add(1)
				if w.NumSGE != 2 || list[0].Addr != w.WRID || list[1].Addr != ^w.WRID {
					t.Errorf("receive %d has pieces %v", w.WRID, list)
				}
				p := w.WRID / each
				if w.WRID+1 <= last[p] {
					t.Errorf("receive %d after %d", w.WRID, last[p]-1)
				}
				last[p] = w.WRID + 1
			}
		})
	}
	wg.Go(func() {
		for i := 0; left.Load() > 0; i++ {
			err := s.Modify(SRQAttr{MaxWR: 1 << (i % 7)}, SRQAttrMaxWR)
			if err != nil && !errors.Is(err, verbs.ErrInvalid) {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	wg.Wait()
	for id := range taken {
		if n := taken[id].Load(); n != 1 {
			t.Fatalf("receive %d was taken %d times", id, n)
		}
	}
}

// TestSRQMemory comes with the first post, is bounded by the depth, and moves
// with it.
func TestSRQMemory(t *testing.T) {
	s, _ := newSRQ(t, MaxWR, MaxSGE)
	room := func() int { return len(s.rq.ring) }
	if s.Take(make([]verbs.SGE, MaxSGE)); room() != 0 {
		t.Errorf("an idle SRQ has room for %d", room())
	}
	if err := s.Modify(SRQAttr{MaxWR: 100}, SRQAttrMaxWR); err != nil || room() != 0 {
		t.Errorf("room for %d after Modify, %v", room(), err)
	}
	if err := s.PostRecv(&verbs.RecvWR{}); err != nil || room() != 128 ||
		len(s.rq.sges) != 128*MaxSGE {
		t.Errorf("room for %d and %d pieces, %v", room(), len(s.rq.sges), err)
	}
	if err := s.Modify(SRQAttr{MaxWR: 1}, SRQAttrMaxWR); err != nil || room() != 1 {
		t.Errorf("room for %d after Modify, %v", room(), err)
	}
	if w, ok := s.Take(make([]verbs.SGE, MaxSGE)); !ok {
		t.Errorf("took %+v", w)
	}
}

// TestSRQDoesNotAllocate when receives are posted and taken.
func TestSRQDoesNotAllocate(t *testing.T) {
	s, _ := newSRQ(t, 4, 2)
	wr, list := verbs.RecvWR{SGList: make([]verbs.SGE, 2)}, make([]verbs.SGE, 2)
	taken := 0
	n := testing.AllocsPerRun(100, func() {
		if s.PostRecv(&wr) != nil {
			t.Error("refused")
		}
		if _, ok := s.Take(list); ok {
			taken++
		}
	})
	if n != 0 || taken == 0 {
		t.Errorf("%v allocations, %d taken", n, taken)
	}
}

// TestSRQFails once, and then gives and takes nothing.
func TestSRQFails(t *testing.T) {
	s, events := newSRQ(t, 4, 1)
	if err := s.PostRecv(&verbs.RecvWR{}); err != nil || s.Failed() {
		t.Fatal(err, s.Failed())
	}
	s.Fail()
	s.Fail()
	if !slices.Equal(*events, []verbs.Event{verbs.EventSRQErr}) || !s.Failed() {
		t.Errorf("events %v, failed %t", *events, s.Failed())
	}
	if _, ok := s.Take(make([]verbs.SGE, 1)); ok {
		t.Error("a receive was taken")
	}
	if err := s.PostRecv(&verbs.RecvWR{}); !errors.Is(err, verbs.ErrState) {
		t.Errorf("posted: %v", err)
	}
}
