package xsk

// For the tests in package xsk_test, which use xsktest and so cannot be in this
// package.

// ProbeKernel is Probe on another kernel.
var ProbeKernel = probe

// Census counts a socket's chunks by owner and reports whether the books agree: the
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
	lent := uint32(0)
	for c, o := range s.umem.owners {
		if o == ownerFill && s.umem.isRx(uint32(c)) {
			lent++
		}
	}
	for _, c := range s.level.spare {
		ok = ok && !seen[c] && s.umem.owners[c] == ownerFree && s.umem.isRx(c)
		seen[c] = true
	}
	l := &s.level
	ok = ok && lent == l.lent && l.now <= l.most && byOwner["free"] ==
		len(l.spare)+freeChunks(s)
	return byOwner, ok
}

// Level is how many receive chunks the kernel is to have.
func (s *Socket) Level() int { return int(s.level.now) }

// freeChunks counts those of free transmit frames and of frames of which a part is sent.
func freeChunks(s *Socket) (n int) {
	for _, o := range s.umem.owners[s.umem.rxChunks:] {
		if o == ownerFree {
			n++
		}
	}
	return n
}

// Chunks is the number of chunks of a socket.
func (s *Socket) Chunks() int { return len(s.umem.owners) }
