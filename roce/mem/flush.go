package mem

// A Sync makes n bytes, beginning off bytes into a region, outlast a loss of
// power, as msync with MS_SYNC does. It runs with the progress lock of the queue
// that got the FLUSH, so it should be quick; an error refuses the FLUSH. Several
// queues may call it at once.
type Sync func(off, n int) error

// Flush does what the FLUSH operation asks for (IBA annex A19): what was written
// to the n bytes at addr before is globally visible when it returns, or
// persistent. With whole the range is all of the region, and addr and n are not
// looked at; key, domain and rights are. Needs FLUSH_GLOBAL or FLUSH_PERSISTENT.
// A request that asks for both takes two calls.
func (k *Keys) Flush(
	d *Domain, key uint32, addr uint64, n int, whole, persistent bool,
) Fault {
	need := FlushGlobal
	if persistent {
		need = FlushPersistent
	}
	r, f := k.grant(d, key, need)
	if f != OK {
		return f
	}
	off := 0
	if whole {
		n = len(r.bytes)
	} else {
		if _, f = r.slice(addr, n); f != OK {
			return f
		}
		off = int(addr - r.base)
	}
	// Payload is stored by this CPU into coherent memory, so what is left to do is
	// to order the stores: an atomic read-modify-write is a full fence on amd64,
	// and a release on arm64, where whoever sees it sees what came before.
	r.fence.Add(1)
	if persistent && r.sync(off, n) != nil {
		return FaultSync
	}
	return OK
}
