package mem

// A Guard reads and writes memory that may be taken away while a key stands for it, as a
// file is that another process cuts off under its mapping. What would end the process
// is FaultUnmapped. It is safe for concurrent use.
type Guard interface {
	// Load copies src, which is the memory, to dst; Store copies src to dst, which is the
	// memory. They are as long as each other. With a fault a part may have been copied.
	Load(dst, src []byte) Fault
	Store(dst, src []byte) Fault
	// Word calls op.Do with a word of the memory, and x and y.
	Word(w *uint64, op WordOp, x, y uint64) (old uint64, f Fault)
}

// A guardedSpace is one slice that is accessed through a guard.
type guardedSpace struct {
	bytes []byte
	guard Guard
}

// ready reports OK: what is gone is found out by accessing it.
func (g *guardedSpace) ready(_, n uint64, _ bool) (looked uint64, f Fault) { return n, OK }

func (g *guardedSpace) load(off uint64, dst []byte) Fault {
	return g.guard.Load(dst, g.bytes[off:][:len(dst)])
}

func (g *guardedSpace) store(off uint64, src []byte) Fault {
	return g.guard.Store(g.bytes[off:][:len(src)], src)
}

func (g *guardedSpace) word(off uint64, op WordOp, x, y uint64) (old uint64, f Fault) {
	w := word(g.bytes[off:][:wordSize])
	if w == nil {
		return 0, FaultMisaligned
	}
	return g.guard.Word(w, op, x, y)
}
