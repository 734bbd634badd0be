package roce

import "xroce/roce/mem"

// This file asks for pages of memory that a request is about to access.

// wantPages asks for the pages of n bytes of pieces, from off on. One that is absent
// was found before: those behind it will be wanted next.
func (t *transport) wantPages(by mem.Accessor, list []SGE, off, n uint32, need mem.Access) {
	for i := 0; n > 0 && i < len(list); i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		m := min(n, s.Length-off)
		t.keys().Ready(by, s.LKey, s.Addr+uint64(off), int(m), need)
		n, off = n-m, 0
	}
}
