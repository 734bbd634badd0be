package mem

import (
	"bytes"
	"errors"
	"testing"
)

// parts is a layout of single bytes of a region, the last one first, so many that it takes several
// parts to find them.
const parts = 3*layEntries + 1

func (s *stand) backwards(r *Region) *Layout {
	s.Helper()
	pieces := make([]Piece, parts)
	for i := range pieces {
		pieces[i] = Piece{r.Addr() + uint64(parts-1-i), 1, r.LKey()}
	}
	return s.list(pieces...)
}

// part does a part of a configuration, which is not the last.
func (s *stand) part(c *Configuration) {
	s.Helper()
	if done, err := s.ConfigurePart(c); done || err != nil {
		s.Fatalf("done %t, %v", done, err)
	}
}

// finish does the parts that are left, and returns how many they were.
func (s *stand) finish(c *Configuration) (n int, err error) {
	for {
		n++
		if done, err := s.ConfigurePart(c); done || err != nil {
			return n, err
		}
	}
}

// begin begins to give a key that has a layout another.
func (s *stand) begin(l *Layout) (r *Region, c *Configuration) {
	s.Helper()
	small := s.region(8, 0, rw)
	r, err := s.RegisterIndirect(s.d, parts)
	if err != nil {
		s.Fatal(err)
	}
	old := UMR{Key: r.LKey(), Layout: s.list(Piece{0, 8, small.LKey()}), Access: rw}
	if err := s.Configure(s.d.Local(), old); err != nil {
		s.Fatal(err)
	}
	c = &Configuration{UMR: UMR{Key: r.LKey(), Layout: l, Access: rw}, By: s.d.Local()}
	return r, c
}

// TestLayoutInParts: a key has its old layout until all of the new one was looked at.
func TestLayoutInParts(t *testing.T) {
	s := newStand(t)
	memory := s.region(parts, 1<<20, rw)
	r, c := s.begin(s.backwards(memory))
	for range 3 {
		s.part(c)
		if got := s.all(r); !bytes.Equal(got, []byte{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Fatalf("% x before the last part", got)
		}
	}
	if n, err := s.finish(c); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	got := s.all(r)
	for i, b := range got {
		if b != byte(parts-1-i) {
			t.Fatalf("byte %d of %d is %d", i, len(got), b)
		}
	}
	if err := s.Deregister(memory); !errors.Is(err, ErrBusy) {
		t.Errorf("the memory of the layout was let go: %v", err)
	}
}

// TestLayoutChangesBetweenParts: what happens to a key between two parts is as if it had happened
// before the first.
func TestLayoutChangesBetweenParts(t *testing.T) {
	t.Run("gone", func(t *testing.T) {
		s := newStand(t)
		memory := s.region(parts, 0, rw)
		r, c := s.begin(s.backwards(memory))
		s.part(c)
		if err := s.Deregister(memory); err != nil {
			t.Fatal(err)
		}
		if _, err := s.finish(c); !errors.Is(err, ErrLayout) {
			t.Error(err)
		}
		if r.Valid() {
			t.Error("the key has its old layout")
		}
	})
	t.Run("moved", func(t *testing.T) {
		s := newStand(t)
		memory := s.region(parts, 0, rw)
		r, c := s.begin(s.backwards(memory))
		s.part(c)
		other := bytes.Repeat([]byte{0xaa}, parts)
		err := s.Reregister(memory, ChangeTranslation, Memory{Bytes: other}, s.d, rw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.finish(c); err != nil {
			t.Fatal(err)
		}
		if got := s.all(r); !bytes.Equal(got, other) {
			t.Error("it leads to memory that the region does not have")
		}
	})
	t.Run("target", func(t *testing.T) {
		s := newStand(t)
		memory := s.region(parts, 0, rw)
		r, c := s.begin(s.backwards(memory))
		s.part(c)
		if f := s.Invalidate(s.d.Local(), r.LKey()); f != OK {
			t.Fatal(f)
		}
		if n, err := s.finish(c); n < 4 || err != nil {
			t.Error(n, err)
		}
	})
	t.Run("busy", func(t *testing.T) {
		s := newStand(t)
		memory := s.region(parts, 0, rw)
		r, c := s.begin(s.backwards(memory))
		s.part(c)
		s.indirect(s.list(Piece{0, 8, r.LKey()}), rw)
		if _, err := s.finish(c); !errors.Is(err, ErrBusy) || !r.Valid() {
			t.Errorf("%v, valid %t", err, r.Valid())
		}
	})
	t.Run("for ever", func(t *testing.T) {
		s := newStand(t)
		memory := s.region(parts, 0, rw)
		_, c := s.begin(s.backwards(memory))
		for n := 0; ; n++ {
			done, err := s.ConfigurePart(c)
			if err != nil || n > 100 {
				t.Fatal(n, err)
			}
			if done {
				return
			}
			if err := s.Reregister(memory, ChangeAccess, Memory{}, nil, rw); err != nil {
				t.Fatal(err)
			}
		}
	})
}
