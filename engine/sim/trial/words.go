package trial

import (
	"encoding/binary"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// Words are the numbers of a node that the atomics of all its peers share.
// Every operand is drawn anew from 64 bits, so no value comes twice: what an
// atomic found tells its place in the order in which all of them were executed.
type words struct {
	mem  []byte
	mr   *engine.MR
	list []*word
}

// A word is one of them, with all that was ever asked of it.
type word struct {
	at    int      // in the memory of the node's words
	seen  []uint64 // values that it had, in the order in which the model saw them
	uses  []*wordUse
	lives [][]*wordUse // by queue pair, in the order of their posts
}

// A wordUse is an operation on a word.
type wordUse struct {
	op         *op
	word       *word
	add        uint64 // FETCH_ADD
	compare    uint64 // CMP_SWP
	swap       uint64
	old        uint64 // what it returned, when it is complete
	from, upTo int    // places in word.seen, when it was posted and when it was complete
}

// canaries around each word.
const wordStride = 8 + canary

// newWords makes n words with values that a seed decides.
func newWords(n int, first uint64) *words {
	ws := &words{mem: make([]byte, canary+n*wordStride)}
	for i := range ws.mem {
		ws.mem[i] = 0xa5
	}
	for i := range n {
		w := &word{at: canary + i*wordStride}
		binary.NativeEndian.PutUint64(ws.mem[w.at:], first+uint64(i))
		w.seen = []uint64{first + uint64(i)}
		ws.list = append(ws.list, w)
	}
	return ws
}

// register makes a region of the words, on a device that was opened.
func (ws *words) register(n *node) {
	var err error
	ws.mr, err = n.device.RegMR(n.pd, ws.mem, mem.LocalWrite|mem.RemoteRead|mem.RemoteAtomic)
	n.w.must(err)
}

// value reads a word.
func (ws *words) value(w *word) uint64 { return binary.NativeEndian.Uint64(ws.mem[w.at:]) }

// observe notes the values that words have now.
func (ws *words) observe() {
	for _, w := range ws.list {
		if v := ws.value(w); v != w.seen[len(w.seen)-1] {
			w.seen = append(w.seen, v)
		}
	}
}

// claimAtomic chooses a word, the operands, and a place for the old value. It reports
// whether there was one.
func claimAtomic(e *endpoint, o *op) bool {
	ws, r := e.peer.node.words, e.w.rng
	if !claimTarget(e, o) {
		return false
	}
	ws.observe()
	w := ws.list[r.IntN(len(ws.list))]
	u := &wordUse{
		op: o, word: w, add: r.Uint64() | 1, compare: r.Uint64(), swap: r.Uint64(),
		from: len(w.seen) - 1, upTo: -1,
	}
	if !one(r, 3) {
		u.compare = ws.value(w)
	}
	o.at = u
	w.uses = append(w.uses, u)
	if e.wordLife == nil {
		e.wordLife = map[*word]int{}
	}
	i, ok := e.wordLife[w]
	if !ok {
		i = len(w.lives)
		e.wordLife[w] = i
		w.lives = append(w.lives, nil)
	}
	w.lives[i] = append(w.lives[i], u)
	return true
}

// retireWord notes what an operation on a word returned.
func retireWord(e *endpoint, o *op) string {
	got := e.arena.mem[o.local.off+o.localAt:][:8]
	copy(e.arena.want[o.local.off+o.localAt:], got)
	ws := e.peer.node.words
	ws.observe()
	o.at.old, o.at.upTo = binary.NativeEndian.Uint64(got), len(o.at.word.seen)-1
	o.local.taken = false
	return e.rested(o.local)
}

// after is the value behind an operation that found one.
func (u *wordUse) after(found uint64) uint64 {
	switch {
	case u.op.code == roce.OpFetchAdd:
		return found + u.add
	case u.op.code == roce.OpCmpSwap && found == u.compare:
		return u.swap
	}
	return found
}

// legal reports whether an operation may have been executed at all.
func (u *wordUse) legal() bool { return u.op.bad == fine && !u.op.afterwards }

// check finds an order of all operations in which each that is complete was
// executed exactly once and returned what it found, every other one at most
// once, those of one queue pair in order, and the word had the values that were
// seen when they were seen. It returns what is wrong, "" when nothing is.
func (ws *words) check() string {
	for i := range ws.mem {
		inWord := i >= canary && (i-canary)%wordStride < 8
		if !inWord && ws.mem[i] != 0xa5 {
			return fmt.Sprintf("byte %d beside the words changed", i)
		}
	}
	ws.observe()
	for i, w := range ws.list {
		if wrong := w.check(); wrong != "" {
			return fmt.Sprintf("word %d: %s", i, wrong)
		}
	}
	return ""
}

func (w *word) check() string {
	o := ordering{word: w, byFound: map[uint64]*wordUse{}, next: make([]int, len(w.lives))}
	for _, u := range w.uses {
		if u.upTo < 0 || u.after(u.old) == u.old {
			continue
		}
		if other := o.byFound[u.old]; other != nil {
			return fmt.Sprintf("%s %d and %s %d both changed %#x", u.op.name, u.op.key,
				other.op.name, other.op.key, u.old)
		}
		o.byFound[u.old] = u
	}
	o.left = len(o.byFound)
	o.path = []uint64{w.seen[0]}
	if !o.walk(1) {
		return fmt.Sprintf("no order of %d operations explains %#x, and the values seen",
			len(w.uses), w.seen[len(w.seen)-1])
	}
	return o.times()
}

// An ordering is a search for the order of a word's operations.
type ordering struct {
	word    *word
	byFound map[uint64]*wordUse // complete operations that changed the word
	left    int                 // of these
	next    []int               // by life: the first that may be executed
	path    []uint64            // values so far
	tries   int
}

// maxTries bounds the search. What is not known is the end of a few queue pairs.
const maxTries = 100_000

// walk goes on from the last value of the path, where seen is how many of the
// values that were seen are behind it. It reports whether it found a way.
func (o *ordering) walk(seen int) bool {
	cur := o.path[len(o.path)-1]
	if o.tries++; o.tries > maxTries {
		return true // not decided
	}
	if o.left == 0 && seen == len(o.word.seen) && cur == o.word.seen[seen-1] {
		return true
	}
	if u := o.byFound[cur]; u != nil {
		o.left--
		if o.step(u.after(cur), seen) {
			return true
		}
		o.left++
		return false
	}
	for life, uses := range o.word.lives {
		was := o.next[life]
		for i := was; i < len(uses); i++ {
			u := uses[i]
			if u.upTo >= 0 || !u.legal() || u.after(cur) == cur {
				continue // it is known, or changes nothing here
			}
			o.next[life] = i + 1
			if o.step(u.after(cur), seen) {
				return true
			}
			o.next[life] = was
			if u.op.code == roce.OpFetchAdd {
				break // those behind it come later
			}
		}
	}
	return false
}

// step adds a value to the path and goes on from there. It reports whether it found a way.
func (o *ordering) step(to uint64, seen int) bool {
	o.path = append(o.path, to)
	if seen < len(o.word.seen) && o.word.seen[seen] == to {
		seen++
	}
	if o.walk(seen) {
		return true
	}
	o.path = o.path[:len(o.path)-1]
	return false
}

// times wants each complete operation between its post and its completion, and
// those of one queue pair one behind the other.
func (o *ordering) times() string {
	if o.tries > maxTries {
		return ""
	}
	place := map[uint64]int{}
	for i, v := range o.path {
		place[v] = i
	}
	for _, uses := range o.word.lives {
		last := 0
		for _, u := range uses {
			if u.upTo < 0 {
				continue
			}
			at, ok := place[u.old]
			if !ok {
				return fmt.Sprintf("%s %d found %#x, which it never was", u.op.name, u.op.id, u.old)
			}
			end := at
			if u.after(u.old) != u.old {
				end++
			}
			switch {
			case at < place[o.word.seen[u.from]]:
				return fmt.Sprintf("%s %d found %#x, which was gone", u.op.name, u.op.id, u.old)
			case end > place[o.word.seen[u.upTo]]:
				return fmt.Sprintf("%s %d found %#x, which came later", u.op.name, u.op.id, u.old)
			case at < last:
				return fmt.Sprintf("%s %d found %#x, from before its predecessor", u.op.name,
					u.op.id, u.old)
			}
			// A READ whose answer was lost is executed again, and then sees more.
			if u.op.code != roce.OpRead {
				last = end
			}
		}
	}
	return ""
}
