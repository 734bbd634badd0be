package handle

// quarantined are the numbers that were given back last, up to a limit. It belongs to whoever
// calls it, and grows until it is at that limit: then it allocates nothing.
type quarantined struct {
	list   []uint32 // a ring, once it is full
	oldest int      // in that
	// places are where in list the numbers are, plus 1: a hash table that is at most half full.
	places []uint32
}

// has reports whether a number is one of them.
func (q *quarantined) has(num uint32) bool {
	if len(q.places) == 0 {
		return false
	}
	return q.places[q.find(num)] != 0
}

// find is where in the hash table a number is, or would be.
func (q *quarantined) find(num uint32) uint32 {
	mask := uint32(len(q.places) - 1)
	for i := num & mask; ; i = (i + 1) & mask {
		if at := q.places[i]; at == 0 || q.list[at-1] == num {
			return i
		}
	}
}

// add puts a number that is none of them behind the others, in place of the oldest where there
// are as many as the limit.
func (q *quarantined) add(num uint32, limit int) {
	at := q.oldest
	if len(q.list) < limit {
		at = len(q.list)
		q.grow(limit)
		q.list = append(q.list, num)
	} else {
		q.remove(q.list[at])
		q.list[at] = num
		q.oldest = (at + 1) % len(q.list)
	}
	q.places[q.find(num)] = uint32(at + 1)
}

// grow has room made for one more.
func (q *quarantined) grow(limit int) {
	if 2*(len(q.list)+1) <= len(q.places) {
		return
	}
	q.places = make([]uint32, max(minSlots, 2*len(q.places)))
	list := make([]uint32, len(q.list), min(limit, len(q.places)/2))
	copy(list, q.list)
	q.list = list
	for i, num := range list {
		q.places[q.find(num)] = uint32(i + 1)
	}
}

// remove takes a number out of the hash table, and moves what lies behind it to where a search
// finds it.
func (q *quarantined) remove(num uint32) {
	hole := q.find(num)
	mask := uint32(len(q.places) - 1)
	for i := (hole + 1) & mask; q.places[i] != 0; i = (i + 1) & mask {
		if begin := q.list[q.places[i]-1] & mask; (i-begin)&mask >= (i-hole)&mask {
			q.places[hole] = q.places[i]
			hole = i
		}
	}
	q.places[hole] = 0
}
