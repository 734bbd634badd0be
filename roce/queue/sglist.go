package queue

import (
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// Gather copies payload from the pieces of a work request, beginning off bytes into them,
// on behalf of by. The pieces have as much as dst has room for.
func Gather(keys *mem.Keys, by mem.Accessor, list []verbs.SGE, off uint32, dst []byte) mem.Fault {
	for i := 0; len(dst) > 0; i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		n := min(uint32(len(dst)), s.Length-off)
		fault := keys.Load(by, s.LKey, s.Addr+uint64(off), dst[:n], 0)
		if fault != mem.OK {
			return fault
		}
		dst, off = dst[n:], 0
	}
	return mem.OK
}

// Scatter copies payload to the pieces of a work request, beginning off bytes into them,
// on behalf of by. The pieces have room for it.
func Scatter(keys *mem.Keys, by mem.Accessor, list []verbs.SGE, off uint32, src []byte) mem.Fault {
	for i := 0; len(src) > 0; i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		n := min(uint32(len(src)), s.Length-off)
		fault := keys.Store(by, s.LKey, s.Addr+uint64(off), src[:n], mem.LocalWrite)
		if fault != mem.OK {
			return fault
		}
		src, off = src[n:], 0
	}
	return mem.OK
}
