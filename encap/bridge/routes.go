package bridge

import (
	"fmt"
	"net/netip"
	"slices"
)

// maxRoutes bounds how many prefixes there are: they are looked through one by one.
const maxRoutes = 1024

// A Route says which peer has the addresses of a prefix.
type Route struct {
	Prefix netip.Prefix
	Port   Port
}

// Routes say which peer has an address, by the longest prefix that it is in.
type Routes struct{ list []Route }

// NewRoutes makes a table. Two peers cannot have the same prefix.
func NewRoutes(list []Route) (*Routes, error) {
	if len(list) > maxRoutes {
		return nil, fmt.Errorf("bridge: %d routes, there is room for %d", len(list), maxRoutes)
	}
	r := &Routes{list: slices.Clone(list)}
	for i := range r.list {
		e := &r.list[i]
		if !e.Prefix.IsValid() || e.Port <= Inside {
			return nil, fmt.Errorf("bridge: no route to %s by peer %d", e.Prefix, e.Port)
		}
		if e.Prefix != e.Prefix.Masked() {
			return nil, fmt.Errorf("bridge: the route to %s is to be %s", e.Prefix,
				e.Prefix.Masked())
		}
		for _, before := range r.list[:i] {
			if before.Prefix == e.Prefix && before.Port != e.Port {
				return nil, fmt.Errorf("bridge: two peers have %s", e.Prefix)
			}
		}
	}
	slices.SortStableFunc(r.list, func(a, b Route) int { return b.Prefix.Bits() - a.Prefix.Bits() })
	return r, nil
}

// To is the peer that has an address, Drop for none.
func (r *Routes) To(a netip.Addr) Port {
	for i := range r.list {
		if r.list[i].Prefix.Contains(a) {
			return r.list[i].Port
		}
	}
	return Drop
}
