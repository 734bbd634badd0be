package pager

import (
	"errors"
	"fmt"

	"xroce/roce/mem"
)

// A guard accesses memory as a Region does, but for the questions whether its pages are
// present: a page that is absent is waited for.
type guard struct{ pager *Pager }

// Guard is for memory that is mapped all the time but may lose what is behind it, as the
// mapping of a file does when the file gets shorter: an access that raises SIGBUS there
// is mem.FaultUnmapped. It needs no Close. The error is errors.ErrUnsupported where the
// operating system has no such thing.
func (p *Pager) Guard() (mem.Guard, error) {
	if !supported {
		return nil, fmt.Errorf("pager: guarded memory needs Linux: %w", errors.ErrUnsupported)
	}
	return guard{p}, nil
}

func (g guard) Load(dst, src []byte) mem.Fault {
	return g.pager.met(copyFrom(AddressOf(src), dst))
}

func (g guard) Store(dst, src []byte) mem.Fault {
	return g.pager.met(copyTo(AddressOf(dst), src))
}

func (g guard) Word(w *uint64, op mem.WordOp, x, y uint64) (uint64, mem.Fault) {
	old, f := operate(addressOfWord(w), op, x, y)
	return old, g.pager.met(f)
}

// Gone returns how many accesses met memory that was taken away, of regions and guards.
func (p *Pager) Gone() uint64 { return p.gone.Load() }

// met counts an access that the kernel stopped.
func (p *Pager) met(f mem.Fault) mem.Fault {
	if f != mem.OK {
		p.gone.Add(1)
	}
	return f
}
