package mem

import (
	"bytes"
	"sync"
	"testing"
)

// TestStoredAgain: several devices store the same bytes in memory that each has registered, as when
// a peer sends a part of a message again by another rail. It is for the race detector: nothing but
// the peer orders these.
func TestStoredAgain(t *testing.T) {
	const size, packet = 1 << 16, 1 << 10
	memory, want := make([]byte, size), bytes.Repeat([]byte("again"), size)[:size]
	pieces := [][]byte{make([]byte, size/2), make([]byte, size/2)}
	var devices sync.WaitGroup
	for n := range 2 {
		k, d := newKeys(uint64(n+1)), new(Domain)
		plain, err := k.RegisterAt(d, memory, 0, LocalWrite|RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		several, err := k.RegisterMemory(d, Memory{Slices: pieces}, LocalWrite|RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		devices.Go(func() {
			for _, r := range []*Region{plain, several} {
				for off := 0; off < size; off += packet {
					at := r.Addr() + uint64(off)
					f := k.Store(d.Local(), r.RKey(), at, want[off:][:packet], RemoteWrite)
					if f != OK {
						t.Errorf("%d: %s", off, f)
					}
				}
			}
		})
	}
	devices.Wait()
	if !bytes.Equal(memory, want) || !bytes.Equal(bytes.Join(pieces, nil), want) {
		t.Error("what was stored is not there")
	}
}
