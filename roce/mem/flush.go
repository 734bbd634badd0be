package mem

// A Sync makes n bytes, above 0, beginning off bytes into a region, outlast a loss of
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
	a Accessor, key uint32, addr uint64, n int, whole, persistent bool,
) Fault {
	need := FlushGlobal
	if persistent {
		need = FlushPersistent
	}
	v, f := k.grant(a, key, need)
	if f != OK {
		return f
	}
	off, length := uint64(0), v.length
	if !whole {
		length = uint64(n)
		if off, f = v.within(addr, length); f != OK {
			return f
		}
	}
	// Payload is stored by this CPU into coherent memory, so what is left to do is
	// to order the stores: an atomic read-modify-write is a full fence on amd64,
	// and a release on arm64, where whoever sees it sees what came before.
	k.fence.Add(1)
	if persistent && length > 0 && v.sync(int(v.syncOff+off), int(length)) != nil {
		return FaultSync
	}
	return OK
}
