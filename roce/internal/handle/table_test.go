package handle

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

type thing struct{ num uint32 }

func build(num uint32) *thing { return &thing{num} }

func TestAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table := New[thing](0, 1<<24-1, rng)
	model := map[uint32]*thing{}
	var nums []uint32
	for range 20000 {
		if len(nums) > 0 && rng.IntN(5) < 2 {
			i := rng.IntN(len(nums))
			num := nums[i]
			nums[i] = nums[len(nums)-1]
			nums = nums[:len(nums)-1]
			if !table.Delete(num) || table.Delete(num) {
				t.Fatalf("number %#x: deleted not exactly once", num)
			}
			delete(model, num)
			continue
		}
		v, err := table.Insert(build)
		if err != nil {
			t.Fatal(err)
		}
		if _, dup := model[v.num]; dup {
			t.Fatalf("number %#x drawn twice", v.num)
		}
		model[v.num] = v
		nums = append(nums, v.num)
	}
	if table.Len() != len(model) {
		t.Fatalf("table has %d values, model %d", table.Len(), len(model))
	}
	for num, v := range model {
		if table.Lookup(num) != v {
			t.Fatalf("number %#x: wrong value", num)
		}
	}
	count := 0
	table.All(func(num uint32, v *thing) bool {
		count++
		return model[num] == v
	})
	if count != len(model) {
		t.Errorf("All saw %d of %d", count, len(model))
	}
}

func TestSmallRangeFillsAndRests(t *testing.T) {
	table := New[thing](2, 9, rand.New(rand.NewPCG(3, 4)))
	for range 8 {
		if _, err := table.Insert(build); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.Insert(build); err != ErrFull {
		t.Fatalf("ninth of eight: error %v", err)
	}
	table.Delete(5)
	if _, err := table.Insert(build); err != ErrFull {
		t.Fatalf("the only free number rests, error %v", err)
	}
	for _, num := range []uint32{2, 3, 4, 6} {
		table.Delete(num)
	}
	v, err := table.Insert(build)
	if err != nil || v.num != 5 {
		t.Fatalf("want the number that rested longest, 5, got %v, %v", v, err)
	}
}

// TestNumbersAreNotPredictable checks that numbers spread over the range and
// that one says nothing of the next.
func TestNumbersAreNotPredictable(t *testing.T) {
	const n, buckets = 1 << 16, 256
	table := New[thing](0, 1<<24-1, rand.New(rand.NewPCG(5, 6)))
	var hist [buckets]float64
	var sum, sumSq, sumLag, prev float64
	for i := range n {
		v, err := table.Insert(build)
		if err != nil {
			t.Fatal(err)
		}
		hist[v.num>>16]++
		x := float64(v.num)/(1<<24) - 0.5
		sum, sumSq = sum+x, sumSq+x*x
		if i > 0 {
			sumLag += x * prev
		}
		prev = x
		if i%2 == 0 {
			table.Delete(v.num)
		}
	}
	var chi float64
	for _, got := range hist {
		chi += (got - n/buckets) * (got - n/buckets) / (n / buckets)
	}
	// 255 degrees of freedom: mean 255, standard deviation 22.6.
	if chi > 255+6*22.6 {
		t.Errorf("chi square %.0f", chi)
	}
	if corr := sumLag / sumSq; math.Abs(corr) > 0.02 {
		t.Errorf("serial correlation %.4f", corr)
	}
}

func TestReadersNeverMissALiveNumber(t *testing.T) {
	table := New[thing](0, 1<<24-1, rand.New(rand.NewPCG(7, 8)))
	v, err := table.Insert(build)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if table.Lookup(v.num) != v {
						t.Error("a live number was not found")
						return
					}
				}
			}
		})
	}
	for range 5000 {
		w, err := table.Insert(build)
		if err != nil {
			t.Fatal(err)
		}
		if w.num&3 != 0 {
			table.Delete(w.num)
		}
	}
	close(done)
	wg.Wait()
}

func TestLookupDoesNotAllocate(t *testing.T) {
	table := New[thing](0, 1<<24-1, rand.New(rand.NewPCG(9, 10)))
	v, err := table.Insert(build)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { table.Lookup(v.num) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestInsertAt(t *testing.T) {
	table := New[thing](16, 19, rand.New(rand.NewPCG(11, 12)))
	fixed := &thing{num: 1}
	for _, num := range []uint32{16, 17, 19} {
		if table.InsertAt(num, fixed) {
			t.Errorf("%d may be drawn, and was free to take", num)
		}
	}
	for range 3 {
		if !table.InsertAt(1, fixed) || table.Lookup(1) != fixed {
			t.Fatal("1 cannot be taken")
		}
		if table.InsertAt(1, fixed) {
			t.Error("1 was taken twice")
		}
		for range 100 { // makes the table grow and shrink around it
			v, err := table.Insert(build)
			if err != nil {
				t.Fatal(err)
			}
			table.Delete(v.num)
		}
		if !table.Delete(1) || table.Lookup(1) != nil {
			t.Error("1 is still there")
		}
	}
}

// TestReadersWhileSlotsMove: in a small table each number that is deleted has others take its
// slot. Who looks meanwhile finds what is there, and nothing under a number that is another's.
func TestReadersWhileSlotsMove(t *testing.T) {
	table := New[thing](0, 1<<24-1, rand.New(rand.NewPCG(13, 14)))
	var alive [4]*thing
	for i := range alive {
		v, err := table.Insert(build)
		if err != nil {
			t.Fatal(err)
		}
		alive[i] = v
	}
	var recent atomic.Uint32
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, v := range alive {
					if table.Lookup(v.num) != v {
						t.Error("a live number was not found")
						return
					}
				}
				num := recent.Load()
				if v := table.Lookup(num); v != nil && v.num != num {
					t.Errorf("number %#x: the value of %#x", num, v.num)
					return
				}
			}
		})
	}
	for range 50_000 {
		var gone [3]*thing
		for i := range gone {
			v, err := table.Insert(build)
			if err != nil {
				t.Fatal(err)
			}
			recent.Store(v.num)
			gone[i] = v
		}
		for _, v := range gone {
			if !table.Delete(v.num) {
				t.Fatalf("%#x is not there", v.num)
			}
		}
	}
	close(done)
	wg.Wait()
}

// TestAllWhileOthersGo: each value that stays is seen once, whatever is deleted meanwhile.
func TestAllWhileOthersGo(t *testing.T) {
	table := New[thing](0, 1<<24-1, rand.New(rand.NewPCG(15, 16)))
	var nums []uint32
	for range 1000 {
		v, err := table.Insert(build)
		if err != nil {
			t.Fatal(err)
		}
		nums = append(nums, v.num)
	}
	seen := map[uint32]int{}
	for num := range table.All {
		seen[num]++
		if len(seen) == 10 {
			for _, other := range nums[:900] {
				table.Delete(other)
			}
		}
	}
	for _, num := range nums[900:] {
		if seen[num] != 1 {
			t.Errorf("%#x was seen %d times", num, seen[num])
		}
	}
}

// TestChurnDoesNotAllocate: once as many numbers rest as ever do, to insert and to delete costs
// no memory.
func TestChurnDoesNotAllocate(t *testing.T) {
	table := New[thing](1, 1<<24-1, rand.New(rand.NewPCG(17, 18)))
	var v thing
	number := func(num uint32) *thing { v.num = num; return &v }
	replace := func() {
		for range 10 {
			if _, err := table.Insert(number); err != nil {
				t.Fatal(err)
			}
			table.Delete(v.num)
		}
	}
	for range quarantine / 10 {
		replace()
	}
	replace()
	if n := testing.AllocsPerRun(1000, replace); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestQuarantine compares the numbers that rest with a map of them.
func TestQuarantine(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	const limit = 100
	var q quarantined
	var order []uint32
	for range 5000 {
		num := rng.Uint32N(500)
		resting := slices.Contains(order, num)
		if q.has(num) != resting {
			t.Fatalf("%d rests: %v, want %v", num, !resting, resting)
		}
		if resting {
			continue
		}
		q.add(num, limit)
		if order = append(order, num); len(order) > limit {
			order = order[1:]
		}
	}
}
