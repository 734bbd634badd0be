package bpf

import "slices"

// nearKeys is how many addresses the program looks at before the hash: NEAR in xdp.c.
const nearKeys = 4

// near has the keys in the program's array, which is a part of those that are owned. A zero
// Key is a free place.
type near [nearKeys]Key

// addNear puts an owned key into the array, if there is room. The caller holds mu.
func (p *program) addNear(k Key) error {
	if i := slices.Index(p.near[:], Key{}); i >= 0 {
		return p.setNear(i, k)
	}
	return nil
}

// dropNear takes a key out of the array, before it is out of the hash, and gives its place to
// one of the others. The caller holds mu.
func (p *program) dropNear(k Key) error {
	i := slices.Index(p.near[:], k)
	if i < 0 {
		return nil
	}
	// Zeros come between two keys: half of each could be the key of somebody else.
	if err := p.setNear(i, Key{}); err != nil {
		return err
	}
	for other := range p.owners {
		if other != k && !slices.Contains(p.near[:], other) {
			return p.setNear(i, other)
		}
	}
	return nil
}

// setNear writes the array with another key in one place.
func (p *program) setNear(i int, k Key) error {
	next := p.near
	next[i] = k
	if err := p.objs.Near.Put(uint32(0), next); err != nil {
		return err
	}
	p.near = next
	return nil
}
