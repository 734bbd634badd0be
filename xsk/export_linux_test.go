package xsk

// For the tests in package xsk_test, which use xsktest and so cannot be in this
// package.

// ProbeKernel is Probe on another kernel.
var ProbeKernel = probe

// Census counts a socket's chunks by owner and tells whether the books agree: the
// free frames are free and there once, and the chunks on the way are counted.
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
	return byOwner, ok
}

// Chunks is the number of chunks of a socket.
func (s *Socket) Chunks() int { return len(s.umem.owners) }
