package cc

import (
	"errors"

	"xroce/roce/clock"
)

// ErrConfig says that a parameter is out of range. It comes wrapped with the parameter.
var ErrConfig = errors.New("cc: bad parameter")

// maxPeriod is the longest of any timer, so that sums of times do not overflow.
const maxPeriod = clock.Second

// setDefault gives a parameter that is 0 its value.
func setDefault[T comparable](p *T, v T) {
	if *p == *new(T) {
		*p = v
	}
}
