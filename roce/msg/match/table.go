package match

// The size of a table. It doubles when there are more keys than buckets. It is halved
// when there was at most one key for sparse buckets, through as many removals as
// patience times the number of buckets: a table that is filled and emptied in turn
// keeps its size, and allocates nothing.
const (
	minBuckets = 64 // a power of two, as all sizes are
	sparse     = 8
	patience   = 8
)

// A table finds the first place of a key. It is a hash table with chains, linked
// through the places. A map of Go has no seed that could be passed in, so that a
// simulation would replay, and never becomes smaller.
type table[T any] struct {
	seed    seed
	buckets []*place[T]
	keys    int // different ones
	quiet   int // removals since the table was last not sparse
}

// init makes an empty table.
func (t *table[T]) init(s seed) {
	t.seed, t.buckets = s, make([]*place[T], minBuckets)
}

// bucket is where keys of a hash are.
func (t *table[T]) bucket(hash uint64) **place[T] {
	return &t.buckets[hash&uint64(len(t.buckets)-1)]
}

// find returns the first place of a key, nil if there is none.
func (t *table[T]) find(k key) *place[T] { return t.search(k, t.seed.hash(k)) }

// search is find by a hash that is known.
func (t *table[T]) search(k key, hash uint64) *place[T] {
	for p := *t.bucket(hash); p != nil; p = p.chain {
		if p.key == k {
			return p
		}
	}
	return nil
}

// insert puts a place behind those of its key. The place before it in its list, if there is one,
// is the last of its own key: of the same, which is common, nothing has to be looked up.
func (t *table[T]) insert(p *place[T]) {
	if last := p.prev; last != nil && last.key == p.key {
		p.hash = last.hash
		p.follow(last.after)
		return
	}
	p.hash = t.seed.hash(p.key)
	if f := t.search(p.key, p.hash); f != nil {
		p.follow(f)
		return
	}
	p.first = true
	p.after, p.before = p, p
	if t.keys == len(t.buckets) {
		t.resize(2 * t.keys)
	}
	b := t.bucket(p.hash)
	p.chain, *b = *b, p
	t.keys++
	if t.keys > len(t.buckets)/sparse {
		t.quiet = 0
	}
}

// remove takes a place out, which is in.
func (t *table[T]) remove(p *place[T]) {
	heir := p.after
	p.after.before, p.before.after = p.before, p.after
	if p.first {
		link := t.bucket(p.hash)
		for *link != p {
			link = &(*link).chain
		}
		if heir != p {
			heir.first, heir.chain, *link = true, p.chain, heir
		} else {
			*link = p.chain
			t.keys--
		}
	}
	p.after, p.before, p.chain, p.first = nil, nil, nil, false
	t.settle()
}

// settle counts a removal, and shrinks a table that was sparse for long.
func (t *table[T]) settle() {
	size := len(t.buckets)
	if size == minBuckets || t.keys > size/sparse {
		return
	}
	if t.quiet++; t.quiet >= patience*size {
		t.quiet = 0
		t.resize(size / 2)
	}
}

// resize moves all keys to so many buckets.
func (t *table[T]) resize(size int) {
	old := t.buckets
	t.buckets = make([]*place[T], size)
	for _, p := range old {
		for p != nil {
			next, b := p.chain, t.bucket(p.hash)
			p.chain, *b = *b, p
			p = next
		}
	}
}
