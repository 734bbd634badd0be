package engine

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync"
	"testing"

	"xroce/xsk"
)

// TestInbox: what is put in is taken out in order, as copies of both parts of a frame;
// what finds no room is refused, and the next has room again.
func TestInbox(t *testing.T) {
	var b inbox
	b.init(68)
	head, tail := make([]byte, 60), make([]byte, 8)
	frame := xsk.RxFrame{Head: head, Tail: tail}
	if b.put(0, &xsk.RxFrame{Head: make([]byte, 69)}) {
		t.Error("there was room for a frame that is longer than any")
	}
	var taken [burst]xsk.RxFrame
	next := uint64(0)
	for round := range 3 {
		first := next
		for range inboxFrames {
			binary.BigEndian.PutUint64(tail, next)
			if !b.put(7, &frame) {
				t.Fatalf("no room for frame %d", next)
			}
			next++
		}
		for range 5 {
			if b.put(7, &frame) {
				t.Fatal("room for more frames than there are")
			}
		}
		clear(tail) // the frame goes back to its link
		for first < next {
			n := b.take(taken[:])
			if n == 0 || b.empty() {
				t.Fatalf("took %d frames before %d", n, next)
			}
			for i := range taken[:n] {
				f := &taken[i]
				got := binary.BigEndian.Uint64(f.Head[len(head):])
				if !bytes.Equal(f.Head[:len(head)], head) || f.Tail != nil || got != first ||
					f.Ref[0] != 7 {
					t.Fatalf("frame %d of round %d: %+v", first, round, f)
				}
				first++
			}
			b.release(n)
		}
		if n := b.take(taken[:]); n != 0 || !b.empty() {
			t.Fatal("it is not empty")
		}
	}
}

// TestInboxOfMany has several queues put at once, as fast as there is room: what each put comes
// out in its order, nothing twice, and nothing is missing.
func TestInboxOfMany(t *testing.T) {
	const queues, each = 4, 20_000
	var b inbox
	b.init(16)
	var putting sync.WaitGroup
	for q := range uint32(queues) {
		putting.Go(func() {
			frame := xsk.RxFrame{Head: make([]byte, 16)}
			for i := uint64(0); i < each; {
				binary.BigEndian.PutUint64(frame.Head[8:], i)
				if b.put(q, &frame) {
					i++
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	defer putting.Wait()
	var taken [burst]xsk.RxFrame
	var next [queues]uint64
	for got := 0; got < queues*each; {
		n := b.take(taken[:])
		for i := range taken[:n] {
			from := taken[i].Ref[0]
			if number := binary.BigEndian.Uint64(taken[i].Head[8:]); number != next[from] {
				t.Fatalf("frame %d of queue %d, want %d", number, from, next[from])
			}
			next[from]++
		}
		b.release(n)
		if got += n; n == 0 {
			runtime.Gosched()
		}
	}
	if !b.empty() {
		t.Error("there is more than was put")
	}
}

func TestInboxAllocatesNothing(t *testing.T) {
	var b inbox
	b.init(64)
	frame := xsk.RxFrame{Head: make([]byte, 64)}
	var taken [burst]xsk.RxFrame
	allocs := testing.AllocsPerRun(100, func() {
		for range 2 * inboxFrames {
			b.put(0, &frame)
		}
		for n := b.take(taken[:]); n > 0; n = b.take(taken[:]) {
			b.release(n)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
