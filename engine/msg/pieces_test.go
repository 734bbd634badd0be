package msg_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
)

// cutUp is memory in pieces of these lengths, and the rest.
func cutUp(b []byte, lengths ...int) [][]byte {
	var pieces [][]byte
	for _, n := range lengths {
		pieces, b = append(pieces, b[:n:n]), b[n:]
	}
	return append(pieces, b)
}

// randomPieces is memory cut up at random, some of the pieces empty.
func randomPieces(rng *rand.Rand, b []byte) [][]byte {
	var lengths []int
	for left, n := len(b), rng.IntN(12); n > 0; n-- {
		lengths = append(lengths, rng.IntN(left+1)/(1+rng.IntN(4)))
		left -= lengths[len(lengths)-1]
	}
	return cutUp(b, lengths...)
}

// TestPieces: messages in pieces arrive as they are, in other pieces, by each protocol, over one
// rail and over two, again and again: regions are used for other memory then.
func TestPieces(t *testing.T) {
	_, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	ctx, rng := within(t), rand.New(rand.NewPCG(3, 4))
	for round := range 240 {
		at, from, to := b, ca, cb
		if round%2 == 1 {
			at, from, to = w.endpoints[1], w.ca, w.cb
		}
		data := make([]byte, rng.IntN(16<<rng.IntN(16)))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		got := make([]byte, len(data))
		r := &msg.Receive{Buffers: randomPieces(rng, got), From: to}
		s := &msg.Send{
			Buffers: randomPieces(rng, data), Protocol: rmsg.Protocol(round / 2 % 6),
		}
		must(t, at.PostReceive(r))
		must(t, from.PostSend(s))
		must(t, r.Wait(ctx))
		must(t, s.Wait(ctx))
		if r.Length != len(data) || !bytes.Equal(got, data) {
			t.Fatalf("round %d: %d bytes by %v are others", round, len(data), s.Choice)
		}
	}
}
