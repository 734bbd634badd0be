package xsk

// For the tests in package xsk_test, which use xsktest and so cannot be in this
// package.

// ProbeKernel is Probe on another kernel.
var ProbeKernel = probe

// Census counts a socket's chunks by owner and tells whether each is in one
// place only and the books agree with the rings as far as our side can see.
func (s *Socket) Census() (byOwner map[string]int, ok bool) {
	byOwner = map[string]int{}
	for _, o := range s.umem.owners {
		byOwner[o.String()]++
	}
	seen := map[uint32]bool{}
	ok = byOwner[ownerTx.String()] == int(s.onWay)
	for _, c := range s.umem.free {
		ok = ok && !seen[c] && s.umem.owners[c] == ownerFree && c >= s.umem.rxChunks
		seen[c] = true
	}
	// Addresses of ours in the fill ring that the kernel has not taken.
	fill := s.fill.mem
	for i := fill.Consumer.Load(); i != fill.Producer.Load(); i++ {
		c := s.umem.index(fill.Entries[i&s.fill.mask])
		ok = ok && !seen[c] && s.umem.owners[c] == ownerFill
		seen[c] = true
	}
	tx := s.tx.mem
	for i := tx.Consumer.Load(); i != tx.Producer.Load(); i++ {
		c := s.umem.index(tx.Entries[i&s.tx.mask].Addr)
		ok = ok && !seen[c] && s.umem.owners[c] == ownerTx
		seen[c] = true
	}
	return byOwner, ok
}

// Chunks is the number of chunks of a socket.
func (s *Socket) Chunks() int { return len(s.umem.owners) }
