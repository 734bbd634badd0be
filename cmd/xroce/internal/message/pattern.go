package message

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// period is after how many messages their content is the same again: a prime, so that it fits no
// size of a ring.
const period = 251

// A pattern is the content of the messages of one direction. Each is a part of the same random
// bytes, so that neither making nor comparing one costs more than to look at it.
type pattern struct {
	bytes []byte
	size  int
}

// newPattern makes the content of messages. What goes one way is not what goes the other way.
func newPattern(size int, fromServer bool) pattern {
	seed := [32]byte{0: 'x'}
	if fromServer {
		seed[0] = 'y'
	}
	b := make([]byte, size+period-1)
	_, _ = rand.NewChaCha8(seed).Read(b) // never fails
	return pattern{b, size}
}

// of is message n.
func (p *pattern) of(n int) []byte {
	begin := n % period
	return p.bytes[begin:][:p.size:p.size]
}

// check compares what came with message n. The error says where it differs.
func (p *pattern) check(n int, got []byte) error {
	want := p.of(n)
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("message %d has %d bytes, not %d", n+1, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("message %d differs at byte %d of %d: %#02x, not %#02x", n+1, i,
				len(got), got[i], want[i])
		}
	}
	return nil
}
