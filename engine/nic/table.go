package nic

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// A table is the flow rules of a card, by the ioctl of ethtool.
type table struct {
	iface string // for words
	call  func(b []byte) error
}

// maxRules is the largest table that is read. Cards have some thousands of rules.
const maxRules = 1 << 20

// size returns how many rules there are and can be, and whether the driver chooses places.
func (t table) size() (count, room int, chooses bool, err error) {
	b := request(cmdRuleCount, 0)
	if err := t.call(b); err != nil {
		return 0, 0, false, err
	}
	data := binary.NativeEndian.Uint64(b[offData:])
	count = int(binary.NativeEndian.Uint32(b[offCount:]))
	if count > maxRules {
		return 0, 0, false, fmt.Errorf("the driver of %s says that it has %d flow rules",
			t.iface, count)
	}
	return count, int(data &^ locSpecial), data&locSpecial != 0, nil
}

// rules reads all rules.
func (t table) rules() ([]Rule, error) {
	count, _, _, err := t.size()
	if err != nil || count == 0 {
		return nil, err
	}
	b := request(cmdRules, 4*count)
	ne := binary.NativeEndian
	ne.PutUint32(b[offCount:], uint32(count))
	if err := t.call(b); err != nil {
		return nil, err
	}
	var list []Rule
	for i := range min(count, int(ne.Uint32(b[offCount:]))) {
		r, err := t.at(ne.Uint32(b[offLocs+4*i:]))
		if errors.Is(err, syscall.ENOENT) {
			continue // somebody removed it meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Rule) int { return cmp.Compare(a.Location, b.Location) })
	return list, nil
}

// at reads the rule at a place.
func (t table) at(location uint32) (Rule, error) {
	b := request(cmdRule, 0)
	binary.NativeEndian.PutUint32(b[offLoc:], location)
	err := t.call(b)
	return parseRule(b), err
}

// insert makes a rule, and returns where it is when the driver has chosen.
func (t table) insert(r Rule) (location uint32, err error) {
	b := request(cmdRuleInsert, 0)
	r.put(b)
	err = t.call(b)
	return binary.NativeEndian.Uint32(b[offLoc:]), err
}

// remove removes the rule at a place.
func (t table) remove(location uint32) error {
	b := request(cmdRuleDelete, 0)
	binary.NativeEndian.PutUint32(b[offLoc:], location)
	return t.call(b)
}

// hash reads which fields of a flow are hashed, 0 when the driver does not tell.
func (t table) hash(flow uint32) Hash {
	b := request(cmdGetHash, 0)
	binary.NativeEndian.PutUint32(b[4:], flow)
	if t.call(b) != nil {
		return 0
	}
	return Hash(binary.NativeEndian.Uint64(b[offData:]))
}

// rings reads how many receive rings there are, 0 when the driver does not tell.
func (t table) rings() int {
	b := request(cmdRings, 0)
	if t.call(b) != nil {
		return 0
	}
	return int(min(binary.NativeEndian.Uint64(b[offData:]), maxIndirection))
}

// maxIndirection is the largest table of RSS that is read. mlx5 has 2048 entries at most.
const maxIndirection = 1 << 16

// indirection reads the table of RSS, nil when the driver has none. safchain/ethtool has room
// for 256 entries and lets the kernel write as many as there are.
func (t table) indirection() []int {
	ne := binary.NativeEndian
	b := make([]byte, 8) // struct ethtool_rxfh_indir: cmd, size, ring_index[]
	ne.PutUint32(b, cmdIndirection)
	if t.call(b) != nil {
		return nil
	}
	n := ne.Uint32(b[4:])
	if n == 0 || n > maxIndirection {
		return nil
	}
	b = make([]byte, 8+4*n)
	ne.PutUint32(b, cmdIndirection)
	ne.PutUint32(b[4:], n)
	if t.call(b) != nil {
		return nil
	}
	list := make([]int, n)
	for i := range list {
		list[i] = int(ne.Uint32(b[8+4*i:]))
	}
	return list
}

// request is an empty struct ethtool_rxnfc, with room for more behind it.
func request(cmd uint32, more int) []byte {
	b := make([]byte, rxnfcLen+more)
	binary.NativeEndian.PutUint32(b, cmd)
	return b
}
