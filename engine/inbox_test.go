package engine

import (
	"bytes"
	"encoding/binary"
	"testing"

	"xroce/xsk"
)

// TestInbox: what is put in is taken out in order, as copies of both parts of a frame;
// what finds no room is lost and counted, and the next has room again.
func TestInbox(t *testing.T) {
	var b inbox
	head, tail := make([]byte, 60), make([]byte, 8)
	frame := xsk.RxFrame{Head: head, Tail: tail}
	next := uint64(0)
	for round := range 3 {
		const more = 5
		first := next
		for range inboxFrames + more {
			binary.BigEndian.PutUint64(tail, next)
			b.put(&frame)
			next++
		}
		if got, want := b.dropped(), uint64(more*(round+1)); got != want {
			t.Fatalf("%d frames were lost, not %d", got, want)
		}
		clear(tail) // the frame goes back to its link
		taken := b.take()
		if len(taken) != inboxFrames {
			t.Fatalf("took %d frames", len(taken))
		}
		for i := range taken {
			f := &taken[i]
			n := binary.BigEndian.Uint64(f.Head[len(head):])
			if !bytes.Equal(f.Head[:len(head)], head) || len(f.Tail) != 0 || n != first+uint64(i) {
				t.Fatalf("frame %d of round %d is number %d, %x", i, round, n, f.Head)
			}
		}
		if b.take() != nil {
			t.Fatal("it is not empty")
		}
	}
}
