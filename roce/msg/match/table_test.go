package match

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// An item is something in a table.
type item struct{ place place[item] }

// newTable makes an empty table with a seed of its own.
func newTable(random *rand.Rand) *table[item] {
	t := &table[item]{}
	t.init(seed{random.Uint64(), random.Uint64()})
	return t
}

// put inserts a new item with a key.
func put(t *table[item], k key) *item {
	i := &item{}
	i.place.of, i.place.key = i, k
	t.insert(&i.place)
	return i
}

// loose reports whether a place points to no other one.
func (p *place[T]) loose() bool {
	return *p == place[T]{of: p.of, key: p.key, hash: p.hash}
}

// longest is the length of the longest chain.
func longest(t *table[item]) (most int) {
	for _, p := range t.buckets {
		n := 0
		for ; p != nil; p = p.chain {
			n++
		}
		most = max(most, n)
	}
	return most
}

// TestTableAgainstMap inserts and removes at random and compares with a map of slices:
// what is found is the first of its key, and the ring has the others in order.
func TestTableAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		tab, want, n := newTable(random), map[key][]*item{}, 0
		keys := 1 + random.Uint64N(3000)
		for step := range 20000 {
			k := key{random.Uint64N(3), random.Uint64N(keys)}
			// It fills at first, then empties.
			if queue := want[k]; random.IntN(20000) > step {
				want[k] = append(queue, put(tab, k))
				n++
			} else if len(queue) > 0 {
				i := random.IntN(len(queue))
				tab.remove(&queue[i].place)
				if !queue[i].place.loose() {
					t.Fatal("what was removed still points somewhere")
				}
				want[k] = slices.Delete(queue, i, i+1)
				n--
			}
			compareKey(t, tab, k, want[k])
		}
		count := 0
		for k, queue := range want {
			compareKey(t, tab, k, queue)
			if len(queue) > 0 {
				count++
			}
		}
		if tab.keys != count {
			t.Fatalf("%d keys are counted of %d", tab.keys, count)
		}
	}
}

// compareKey compares what a table has for a key with what it should have.
func compareKey(t *testing.T, tab *table[item], k key, want []*item) {
	t.Helper()
	first := tab.find(k)
	if len(want) == 0 {
		if first != nil {
			t.Fatalf("%v is found and should not be there", k)
		}
		return
	}
	p := first
	for i, w := range want {
		if p != &w.place || p.first != (i == 0) || p.after.before != p {
			t.Fatalf("number %d of %v is not who it should be", i, k)
		}
		p = p.after
	}
	if p != first {
		t.Fatalf("%v has more than %d", k, len(want))
	}
}

// TestTableForgetsKeys passes ten million different keys through a table that has few
// at a time: it does not grow.
func TestTableForgetsKeys(t *testing.T) {
	n := uint64(10_000_000)
	if testing.Short() {
		n /= 20
	}
	tab := newTable(rand.New(rand.NewPCG(3, 4)))
	var ring [minBuckets]item
	for tag := range n {
		i := &ring[tag%minBuckets]
		if tag >= minBuckets {
			tab.remove(&i.place)
		}
		i.place.of, i.place.key = i, key{1, tag}
		tab.insert(&i.place)
		if len(tab.buckets) != minBuckets {
			t.Fatalf("%d buckets after %d keys, for %d", len(tab.buckets), tag+1, tab.keys)
		}
	}
	if tab.keys != minBuckets {
		t.Errorf("%d keys are left of %d", tab.keys, minBuckets)
	}
}

// TestTableShrinks: a table that was large once becomes small again when few keys come
// and go for long, but not one that is filled now and then.
func TestTableShrinks(t *testing.T) {
	const many = 1000
	tab := newTable(rand.New(rand.NewPCG(5, 6)))
	var items [many]*item
	cycle := func(n uint64) {
		for i := range n {
			items[i] = put(tab, key{tag: i})
		}
		for i := range n {
			tab.remove(&items[i].place)
		}
	}
	cycle(many)
	size := len(tab.buckets)
	if size < many || size > 2*many {
		t.Fatalf("%d buckets for %d keys", size, many)
	}
	for range 100 {
		cycle(many)
		if len(tab.buckets) != size {
			t.Fatalf("filled and emptied in turn, it went from %d buckets to %d",
				size, len(tab.buckets))
		}
	}
	removals := 0
	for ; len(tab.buckets) > minBuckets; removals++ {
		if removals > 2*patience*size {
			t.Fatalf("still %d buckets after %d removals", len(tab.buckets), removals)
		}
		cycle(1)
	}
	// Each halving waits for its own time; what was quiet before counts for the first.
	if least := patience*(2*size-2*minBuckets) - size; removals < least {
		t.Errorf("the buckets went within %d removals, and not %d", removals, least)
	}
	for range 2 * patience * minBuckets {
		cycle(1)
	}
	if len(tab.buckets) != minBuckets {
		t.Errorf("it shrank to %d buckets", len(tab.buckets))
	}
}

// TestTagsDoNotCollide has tags that an attacker may choose without the seed: counted
// up, in high bits only, or such as collide in a table of another seed. No chain
// becomes longer than with tags at random.
func TestTagsDoNotCollide(t *testing.T) {
	const n = 1 << 14
	random := rand.New(rand.NewPCG(7, 8))
	others := seed{1, 2}
	collide := make([]uint64, 0, n)
	for tag := uint64(0); len(collide) < n; tag++ {
		// 64 tags in each of 256 buckets.
		if h := others.hash(key{1, tag}); h&(n-1) < n/64 {
			collide = append(collide, tag)
		}
	}
	for _, tt := range []struct {
		name string
		key  func(i uint64) key
	}{
		{"counted up", func(i uint64) key { return key{1, i} }},
		{"high bits", func(i uint64) key { return key{1, i << 50} }},
		{"reversed", func(i uint64) key { return key{1, bits.Reverse64(i)} }},
		{"another seed", func(i uint64) key { return key{1, collide[i]} }},
		{"many peers", func(i uint64) key { return key{i, 0} }},
		{"peer and tag", func(i uint64) key { return key{i, -i} }},
	} {
		tab := newTable(random)
		for i := range uint64(n) {
			put(tab, tt.key(i))
		}
		// Of 2^14 balls in as many bins, more than 16 are in one once in 10^10.
		if got := longest(tab); got > 16 {
			t.Errorf("%s: a chain of %d", tt.name, got)
		}
	}
	tab := &table[item]{}
	tab.init(others)
	for _, tag := range collide {
		put(tab, key{1, tag})
	}
	if got := longest(tab); got < 32 {
		t.Errorf("who knows the seed makes chains of %d: this test shows nothing", got)
	}
}

// TestOneTagIsOneKey: messages of one tag, however many, are no chain to walk for
// others.
func TestOneTagIsOneKey(t *testing.T) {
	tab := newTable(rand.New(rand.NewPCG(9, 10)))
	for range 100_000 {
		put(tab, key{1, 7})
	}
	if tab.keys != 1 || longest(tab) != 1 || len(tab.buckets) != minBuckets {
		t.Errorf("%d keys, a chain of %d, %d buckets", tab.keys, longest(tab), len(tab.buckets))
	}
}
