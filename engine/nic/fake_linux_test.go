package nic

import (
	"encoding/binary"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A fakeCard is a driver with flow rules, as the ioctl of ethtool shows it.
type fakeCard struct {
	mu      sync.Mutex
	rules   map[uint32][]byte // by location
	room    int
	chooses bool          // takes rules only at a place of its own choice, as bnxt does
	refuses map[Kind]bool // kinds that it does not take
	none    bool          // has no rules at all, as veth
	changes int
	rings   int
	hashes  map[uint32]Hash
	table   []uint32
}

func newFakeCard() *fakeCard { return &fakeCard{rules: map[uint32][]byte{}, room: 16} }

func (c *fakeCard) call(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ne := binary.NativeEndian
	switch cmd := ne.Uint32(b); cmd {
	case cmdGetHash:
		ne.PutUint64(b[offData:], uint64(c.hashes[ne.Uint32(b[4:])]))
	case cmdRings:
		ne.PutUint64(b[offData:], uint64(c.rings))
	case cmdIndirection:
		if n := ne.Uint32(b[4:]); n != 0 {
			for i, q := range c.table {
				ne.PutUint32(b[8+4*i:], q)
			}
		}
		ne.PutUint32(b[4:], uint32(len(c.table)))
	default:
		if c.none {
			return unix.EOPNOTSUPP
		}
		return c.rule(cmd, b)
	}
	return nil
}

func (c *fakeCard) rule(cmd uint32, b []byte) error {
	ne := binary.NativeEndian
	at := ne.Uint32(b[offLoc:])
	switch cmd {
	case cmdRuleCount:
		data := uint64(c.room)
		if c.chooses {
			data |= locSpecial
		}
		ne.PutUint64(b[offData:], data)
		ne.PutUint32(b[offCount:], uint32(len(c.rules)))
	case cmdRules:
		if int(ne.Uint32(b[offCount:])) < len(c.rules) {
			return unix.EMSGSIZE
		}
		for i, l := range c.places() {
			ne.PutUint32(b[offLocs+4*i:], l)
		}
		ne.PutUint32(b[offCount:], uint32(len(c.rules)))
	case cmdRule:
		r, ok := c.rules[at]
		if !ok {
			return unix.ENOENT
		}
		copy(b[offSpec:], r[offSpec:rxnfcLen])
		ne.PutUint32(b[offLoc:], at)
	case cmdRuleInsert:
		switch {
		case c.refuses[parseKind(b)]:
			return unix.EOPNOTSUPP
		case c.chooses != (at == locAny):
			return unix.EINVAL
		case c.chooses:
			for at = 0; c.rules[at] != nil; at++ {
			}
		case int(at) >= c.room:
			return unix.EINVAL
		}
		ne.PutUint32(b[offLoc:], at)
		c.rules[at] = slices.Clone(b)
		c.changes++
	case cmdRuleDelete:
		if c.rules[at] == nil {
			return unix.ENOENT
		}
		delete(c.rules, at)
		c.changes++
	}
	return nil
}

func (c *fakeCard) places() []uint32 {
	var list []uint32
	for l := range c.rules {
		list = append(list, l)
	}
	slices.Sort(list)
	return list
}

// add makes a rule as somebody else would, and returns its place.
func (c *fakeCard) add(r Rule) {
	b := request(cmdRuleInsert, 0)
	r.put(b)
	c.rules[r.Location] = b
}
