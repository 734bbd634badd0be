package trial

import (
	"bytes"
	"fmt"
)

// canary is how many bytes around each slot nobody may touch.
const canary = 64

// A pool is what slots are for.
type pool uint8

const (
	poolSource   pool = iota // payload to send
	poolReceive              // receives
	poolTarget               // where our READs bring data
	poolWritable             // where the peer writes
	poolReadable             // what the peer reads
	poolTicket               // what the peer writes until it takes the key out of use

	numPools
)

// A slot is a piece of memory with canaries on both sides.
type slot struct {
	off, n int
	taken  bool  // by a request or a receive of the owner
	locked bool  // by one request of the peer alone
	claims []*op // of the peer, not known to be complete, in order
}

// free reports whether nobody uses the slot.
func (s *slot) free() bool { return !s.taken && !s.locked && len(s.claims) == 0 }

// unclaim removes a request of the peer.
func (s *slot) unclaim(o *op) {
	for i, c := range s.claims {
		if c == o {
			s.claims = append(s.claims[:i], s.claims[i+1:]...)
			return
		}
	}
}

// An arena is the memory of one end of a connection, with its model.
type arena struct {
	mem   []byte // what the device sees
	want  []byte // what it must be, where no request is under way
	pools [numPools][]*slot
	bound [numPools + 1]int // where each pool begins
	idle  uint64            // idle patterns used
}

// newArena makes an arena with so many slots of so many bytes in each pool, and
// with a ticket if it is wanted.
func newArena(slots, size int, ticket bool) *arena {
	counts := [numPools]int{slots, slots, slots, slots, slots, 0}
	if ticket {
		counts[poolTicket] = 1
	}
	return layOut(counts, size)
}

// newReceiveArena makes an arena for receives alone.
func newReceiveArena(slots, size int) *arena {
	return layOut([numPools]int{poolReceive: slots}, size)
}

// layOut makes an arena with so many slots in each pool.
func layOut(counts [numPools]int, size int) *arena {
	a := &arena{}
	off := canary
	for p, n := range counts {
		a.bound[p] = off
		if pool(p) == poolTicket {
			size = ticketSize
		}
		for range n {
			a.pools[p] = append(a.pools[p], &slot{off: off + canary, n: size})
			off += size + canary
		}
		off += 2 * canary
	}
	a.bound[numPools] = off
	a.mem = bytes.Repeat([]byte{0xa5}, off+canary)
	for p := range numPools {
		for _, s := range a.pools[p] {
			a.idle++
			rest(a.mem[s.off:s.off+s.n], a.idle)
		}
	}
	a.want = bytes.Clone(a.mem)
	return a
}

// region is the memory of pools from to to, to register.
func (a *arena) region(from, to pool) []byte {
	return a.mem[a.bound[from] : a.bound[to+1]-canary]
}

// set is a store of the application: memory and model change.
func (a *arena) set(s *slot, at, n int, key uint64) {
	fill(a.mem[s.off+at:s.off+at+n], key)
	copy(a.want[s.off+at:s.off+at+n], a.mem[s.off+at:])
}

// scramble puts a new pattern in a slot, so that a late store into it shows.
func (a *arena) scramble(s *slot) {
	a.idle++
	rest(a.mem[s.off:s.off+s.n], a.idle)
	copy(a.want[s.off:s.off+s.n], a.mem[s.off:])
}

// differs compares a slot and the canaries around it with the model and returns
// what is wrong, "" when nothing is.
func (a *arena) differs(s *slot) string {
	from, to := s.off-canary, s.off+s.n+canary
	return a.compare(from, to)
}

// compare compares a range with the model.
func (a *arena) compare(from, to int) string {
	if bytes.Equal(a.mem[from:to], a.want[from:to]) {
		return ""
	}
	at, n := -1, 0
	for i := from; i < to; i++ {
		if a.mem[i] != a.want[i] {
			n++
			if at < 0 {
				at = i
			}
		}
	}
	return fmt.Sprintf("%d bytes differ, the first is %s: % x, want % x", n, a.place(at),
		a.mem[at:min(at+8, to)], a.want[at:min(at+8, to)])
}

// place says where a byte is.
func (a *arena) place(at int) string {
	names := [numPools]string{"source", "receive", "target", "writable", "readable", "ticket"}
	for p := range numPools {
		for i, s := range a.pools[p] {
			switch {
			case at < s.off-canary || at >= s.off+s.n+canary:
			case at < s.off || at >= s.off+s.n:
				return fmt.Sprintf("in the canary of %s slot %d", names[p], i)
			default:
				return fmt.Sprintf("byte %d of %s slot %d", at-s.off, names[p], i)
			}
		}
	}
	return fmt.Sprintf("outside all slots, at %d", at)
}

// A partial is data that a request which failed may have stored, or not, or in
// part.
type partial struct {
	at   int
	data []byte
}

// judge looks at a slot that failed requests may have written to: each byte is
// what it was or what one of them brought. The model then takes over what is
// there. It returns what is wrong, "" when nothing is.
func (a *arena) judge(s *slot, partials []partial) string {
	if bytes.Equal(a.mem[s.off:s.off+s.n], a.want[s.off:s.off+s.n]) {
		return ""
	}
	for i := range s.n {
		got := a.mem[s.off+i]
		if got == a.want[s.off+i] {
			continue
		}
		known := false
		for _, p := range partials {
			if d := i - p.at; d >= 0 && d < len(p.data) && p.data[d] == got {
				known = true
				break
			}
		}
		if !known {
			return fmt.Sprintf("%s is %#02x, which no request brought",
				a.place(s.off+i), got)
		}
		a.want[s.off+i] = got
	}
	return ""
}

// pick returns a free slot of a pool, beginning the search at a number.
func (a *arena) pick(p pool, from int) *slot {
	for i := range a.pools[p] {
		if s := a.pools[p][(from+i)%len(a.pools[p])]; s.free() {
			return s
		}
	}
	return nil
}
