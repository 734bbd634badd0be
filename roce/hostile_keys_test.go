package roce_test

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"xroce/roce/internal/handle"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A trueRandom is the system's randomness, as a device uses it.
type trueRandom struct {
	buf  [512]byte
	left int
}

func (r *trueRandom) Uint64() uint64 {
	if r.left == 0 {
		_, _ = rand.Read(r.buf[:])
		r.left = len(r.buf)
	}
	v := binary.LittleEndian.Uint64(r.buf[len(r.buf)-r.left:])
	r.left -= 8
	return v
}

// A dice judges whether numbers of so many bits are drawn evenly and
// independently: each byte by chi square, each number against the one before.
type dice struct {
	bits            int
	n               float64
	hist            [4][256]float64
	squares, lag, x float64
	steps           map[uint32]int // differences of neighbours
	prev            uint32
}

func (d *dice) throw(num uint32) {
	for i := range d.bits / 8 {
		d.hist[i][num>>(8*i)&0xff]++
	}
	x := float64(num)/math.Exp2(float64(d.bits)) - 0.5
	if d.n > 0 {
		d.lag += x * d.x
		if d.steps == nil {
			d.steps = map[uint32]int{}
		}
		if step := num - d.prev; step+16 < 33 {
			d.steps[step]++
		}
	}
	d.squares, d.x, d.prev = d.squares+x*x, x, num
	d.n++
}

// judge reports what is not as it should be of 10^6 numbers. With 255 degrees of
// freedom chi square is 255 on average with a standard deviation of 22.6; seven of
// these make a wrong verdict rarer than one in 10^9 runs.
func (d *dice) judge() error {
	var errs []error
	each := d.n / 256
	for i := range d.bits / 8 {
		chi := 0.0
		for _, got := range d.hist[i] {
			chi += (got - each) * (got - each) / each
		}
		if chi > 255+7*22.6 || chi < 255-7*22.6 {
			errs = append(errs, fmt.Errorf("chi square of byte %d is %.0f", i, chi))
		}
	}
	if corr := d.lag / d.squares; math.Abs(corr) > 0.01 {
		errs = append(errs, fmt.Errorf("serial correlation %.4f", corr))
	}
	near := 0
	for _, n := range d.steps {
		near += n
	}
	// 33 of the 2^bits differences, each 10^6 / 2^bits times.
	if limit := 10 + 10*int(33*d.n/math.Exp2(float64(d.bits))); near > limit {
		errs = append(errs, fmt.Errorf("%d of %.0f numbers follow close on one", near, d.n))
	}
	return errors.Join(errs...)
}

// draws is how many numbers the tests of randomness look at.
func draws() int {
	if testing.Short() {
		return 100_000
	}
	return 1_000_000
}

// restTime is how many numbers must be given back before one comes again.
const restTime = 1 << 16

// TestHostileKeyRandomness: 10^6 memory keys are even, independent, and none
// comes again within the quarantine, with another variant or the same.
func TestHostileKeyRandomness(t *testing.T) {
	keys, domain := mem.NewKeys(new(trueRandom)), new(mem.Domain)
	memory := make([]byte, 8)
	var whole dice
	whole.bits = 32
	seen := map[uint32]int{} // index of a key, when it was given back
	var live []*mem.Region
	back := 0
	for range draws() {
		r, err := keys.RegisterAt(domain, memory, 0, mem.LocalWrite)
		must(t, err)
		whole.throw(r.RKey())
		index := r.RKey() >> 8
		if at, used := seen[index]; used && back-at < restTime {
			t.Fatalf("key %#x again after %d others", r.RKey(), back-at)
		}
		live = append(live, r)
		if len(live) == 256 {
			for _, r := range live {
				if keys.Deregister(r) != nil {
					t.Fatal("not deregistered")
				}
				seen[r.RKey()>>8] = back
				back++
			}
			live = live[:0]
		}
	}
	must(t, whole.judge())
}

// TestHostileKeyGuess: of 10^6 guesses at one of 4096 keys no more hit than
// chance allows, and a known key is no help.
func TestHostileKeyGuess(t *testing.T) {
	source := new(trueRandom)
	keys, domain := mem.NewKeys(source), new(mem.Domain)
	memory := make([]byte, 8)
	var last uint32
	for range 4096 {
		r, err := keys.RegisterAt(domain, memory, 0, mem.LocalWrite|mem.RemoteWrite)
		must(t, err)
		last = r.RKey()
	}
	hits := 0
	for i := range draws() {
		guess := uint32(source.Uint64())
		if i%2 == 0 {
			guess = last + uint32(i/2) + 1 // walk on from a key that we know
		}
		if keys.Check(domain.Local(), guess, 0, 8, mem.RemoteWrite) == mem.OK {
			hits++
		}
	}
	// One is expected, at 10^6 guesses of 2^32 at 4096.
	if hits > 12 {
		t.Errorf("%d of %d guesses hit", hits, draws())
	}
}

// TestHostileQPNRandomness: the same for 10^6 QP numbers, in the range that a
// device draws them from: 0, 1 and the multicast number never come.
func TestHostileQPNRandomness(t *testing.T) {
	table := handle.New[int](16, wire.MulticastQP-1, new(trueRandom))
	d := dice{bits: 24}
	seen := map[uint32]int{}
	for i := range draws() {
		var num uint32
		_, err := table.Insert(func(n uint32) *int { num = n; return new(int) })
		must(t, err)
		if num < 16 || num >= wire.MulticastQP {
			t.Fatalf("QP number %#x", num)
		}
		d.throw(num)
		if at, used := seen[num]; used && i-at < restTime {
			t.Fatalf("QP number %#x again after %d others", num, i-at)
		}
		seen[num] = i
		table.Delete(num)
	}
	must(t, d.judge())
}

// TestHostileRandomnessCanFail: the tests above are no use if they never fail:
// numbers as other stacks draw them do.
func TestHostileRandomnessCanFail(t *testing.T) {
	for name, next := range map[string]func(i uint32) uint32{
		"sequential":   func(i uint32) uint32 { return i },
		"by 256":       func(i uint32) uint32 { return i << 8 },
		"short random": func(i uint32) uint32 { return i<<8 | i*2654435761>>24 },
		"two in turn":  func(i uint32) uint32 { return i % 2 * 0x800000 },
	} {
		d := dice{bits: 24}
		for i := range uint32(100_000) {
			d.throw(next(i) & 0xffffff)
		}
		if d.judge() == nil {
			t.Errorf("%s numbers pass", name)
		}
	}
}
