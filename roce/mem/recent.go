package mem

// recentKeys is how many keys are remembered: with more in use at once, which of them is luck.
const recentKeys = 8

// A Recent remembers what keys stood for that were used last. The packets of a message, and of
// most connections, use the same ones, so looking each up and checking its rights anew is most of
// what an access costs. What is remembered is as good as that: it counts only as long as no key
// was taken away since, and the key stands for the same. The zero value is ready. It belongs to
// one goroutine at a time, and is for one set of keys.
type Recent struct {
	list [recentKeys]recentKey
}

// A recentKey is a key that granted an access.
type recentKey struct {
	key    uint32
	need   Access
	domain *Domain
	party  *Party
	cell   *cell
	view   *view // nil for nothing
	moves  uint64
}

// Forget lets go of all memory: whoever deregistered it may then free it.
func (r *Recent) Forget() { clear(r.list[:]) }

// Check is Keys.Check.
func (r *Recent) Check(k *Keys, a Accessor, key uint32, addr uint64, n int, need Access) Fault {
	v, f := r.grant(k, a, key, need)
	if f != OK {
		return f
	}
	_, f = v.within(addr, uint64(n))
	return f
}

// Load is Keys.Load.
func (r *Recent) Load(
	k *Keys, a Accessor, key uint32, addr uint64, dst []byte, need Access,
) Fault {
	v, f := r.grant(k, a, key, need)
	if f != OK {
		return f
	}
	off, f := v.within(addr, uint64(len(dst)))
	if f != OK {
		return f
	}
	return v.load(off, dst)
}

// Store is Keys.Store.
func (r *Recent) Store(
	k *Keys, a Accessor, key uint32, addr uint64, src []byte, need Access,
) Fault {
	v, f := r.grant(k, a, key, need)
	if f != OK {
		return f
	}
	off, f := v.within(addr, uint64(len(src)))
	if f != OK {
		return f
	}
	return v.store(off, src)
}

// grant is Keys.grant.
func (r *Recent) grant(k *Keys, a Accessor, key uint32, need Access) (*view, Fault) {
	e := &r.list[key>>variantBits%recentKeys]
	if v := e.view; v != nil && e.key == key && e.need == need && e.domain == a.Domain &&
		e.party == a.Party && e.moves == k.cells.Moves() && e.cell.view.Load() == v &&
		(a.Since == 0 || v.born <= a.Since) {
		return v, OK
	}
	return r.look(k, a, key, need)
}

// look is grant of what is not remembered.
func (r *Recent) look(k *Keys, a Accessor, key uint32, need Access) (*view, Fault) {
	moves := k.cells.Moves()
	v, f := k.grant(a, key, need)
	if f != OK {
		return v, f
	}
	c := k.cells.Lookup(key >> variantBits)
	if c != nil && c.view.Load() == v && moves&1 == 0 {
		r.list[key>>variantBits%recentKeys] = recentKey{
			key: key, need: need, domain: a.Domain, party: a.Party, cell: c, view: v,
			moves: moves,
		}
	}
	return v, f
}
