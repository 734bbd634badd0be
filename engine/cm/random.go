package cm

import (
	"xroce/engine"
	"xroce/roce"
)

// source draws communication IDs and PSNs, by default from what the device draws
// its own from.
type source struct {
	from roce.Rand
	dev  *engine.Device
}

// Uint64 implements roce.Rand.
func (s *source) Uint64() uint64 {
	if s.from != nil {
		return s.from.Uint64()
	}
	return uint64(s.dev.RandomPSN())<<48 ^ uint64(s.dev.RandomPSN())<<24 ^
		uint64(s.dev.RandomPSN())
}
