package load

import (
	"math/rand/v2"

	"xroce/roce/mem"
)

// configureEntries is how many pieces a layout has, or rows.
const configureEntries = 4096

// listed is a list of pieces of a region, none of them beside another.
func listed(r *mem.Region) (*mem.Layout, error) {
	pieces := make([]mem.Piece, configureEntries)
	for i := range pieces {
		pieces[i] = mem.Piece{Addr: r.Addr() + uint64(16*i), Length: 8, LKey: r.LKey()}
	}
	return mem.NewList(pieces)
}

// columned is the same bytes as one block.
func columned(r *mem.Region) (*mem.Layout, error) {
	return mem.NewInterleaved([]uint64{configureEntries},
		[]mem.Block{{Addr: r.Addr(), Bytes: 8, Strides: []uint64{16}, LKey: r.LKey()}})
}

// configureStep returns a function that makes a layout and gives it to a key, so many
// times.
func configureStep(
	layout func(*mem.Region) (*mem.Layout, error),
) (func(times int) bool, error) {
	keys, domain := mem.NewKeys(rand.NewPCG(1, 2)), new(mem.Domain)
	r, err := keys.Register(domain, make([]byte, 16*configureEntries), mem.LocalWrite)
	if err != nil {
		return nil, err
	}
	key, err := keys.RegisterIndirect(domain, configureEntries)
	if err != nil {
		return nil, err
	}
	return func(times int) bool {
		for range times {
			l, err := layout(r)
			if err != nil {
				return false
			}
			u := mem.UMR{Key: key.LKey(), Layout: l, Access: mem.LocalWrite}
			if keys.Configure(domain.Local(), u) != nil {
				return false
			}
		}
		return key.Len() == 8*configureEntries
	}, nil
}
