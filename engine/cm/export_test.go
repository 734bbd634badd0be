package cm

import (
	"xroce/roce"
	"xroce/roce/wire"
)

// SearchTime is how long a manager searches for a destination.
const SearchTime = searchTime

// MaxRoutes is how many destinations are remembered.
const MaxRoutes = maxRoutes

// Remembered returns how many of so many destinations are known once all were learned.
func Remembered(n int) (known int) {
	var r routes
	r.init()
	to := func(i int) destination { return destination{vlan: wire.VLAN(i)} }
	for i := range n {
		r.learn(to(i), [6]byte{2}, 0)
	}
	for i := range n {
		if _, ok := r.get(to(i), roce.Second); ok {
			known++
		}
	}
	return known
}
