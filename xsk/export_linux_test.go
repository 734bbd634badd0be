package xsk

// For the tests in package xsk_test, which use xsktest and so cannot be in this
// package.

// ProbeKernel is Probe on another kernel.
var ProbeKernel = probe

// Census counts a socket's chunks by owner and reports whether its counts agree with
// that: free frames are free and there once, and outstanding chunks are counted.
func (s *Socket) Census() (byOwner map[string]int, ok bool) {
	byOwner = map[string]int{}
	for _, o := range s.umem.owners {
		byOwner[o.String()]++
	}
	seen := map[uint32]bool{}
	ok = byOwner[ownerTx.String()] == int(s.outstanding)
	for _, c := range s.umem.free {
		ok = ok && !seen[c] && s.umem.owners[c] == ownerFree && c >= s.umem.rxChunks
		seen[c] = true
	}
	withKernel := uint32(0)
	for c, o := range s.umem.owners {
		if o == ownerFill && s.umem.isRx(uint32(c)) {
			withKernel++
		}
	}
	for _, c := range s.fillTarget.spare {
		ok = ok && !seen[c] && s.umem.owners[c] == ownerFree && s.umem.isRx(c)
		seen[c] = true
	}
	f := &s.fillTarget
	ok = ok && withKernel == f.withKernel && f.target <= f.total && byOwner["free"] ==
		len(f.spare)+freeChunks(s)
	return byOwner, ok
}

// Members are the sockets of a group.
func (g *Group) Members() []*Socket { return g.sockets }

// FillTarget is how many receive chunks the kernel is to have.
func (s *Socket) FillTarget() int { return int(s.fillTarget.target) }

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

// CgroupLimits are the limits of a process that is in these cgroups, mounted at root.
func CgroupLimits(groups, root string) MemoryLimits {
	m := MemoryLimits{Locked: Unlimited, Charged: Unlimited}
	m.charge(groups, root)
	return m
}
