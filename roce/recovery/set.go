package recovery

import "xroce/roce/wire"

// Span is how many PSNs the types of this package look at: a packet may be this far
// ahead of the awaited one, less one, and the window of a queue pair with selective
// repeat is not larger. A power of two.
const Span = 256

// A Set is a set of PSNs, none Span or more ahead of another.
type Set [Span / 64]uint64

// Has reports whether a PSN is in the set.
func (s *Set) Has(p wire.PSN) bool { return s[p%Span/64]&(1<<(p%64)) != 0 }

// Add puts a PSN in.
func (s *Set) Add(p wire.PSN) { s[p%Span/64] |= 1 << (p % 64) }

// Remove takes a PSN out.
func (s *Set) Remove(p wire.PSN) { s[p%Span/64] &^= 1 << (p % 64) }
