package queue

import (
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// MaxInlineRecv is the most bytes of a message that a completion may carry.
const MaxInlineRecv = 64

// inlinePieces is how many pieces of memory they may be for: more are written at once,
// as without inline receive.
const inlinePieces = 4

// An InlinePayload is the payload of a packet on its way to a completion queue entry
// that is to carry it, with where it goes in the end. It borrows the packet: it is good
// until the packet is given back, and belongs to the goroutine that handles it.
type InlinePayload struct {
	keys       *mem.Keys
	by         mem.Accessor
	list       [inlinePieces]verbs.SGE
	pieces     int
	head, tail []byte // of the packet, borrowed
}

// Prepare takes a payload in its two parts, which begins where the pieces of a work
// request do, and reports whether a completion can carry it: whether the pieces are few,
// and their memory such that the bytes can be stored later. They have room for it, and it
// is no more than MaxInlineRecv. The fault is that of memory that cannot take it at all;
// it is checked for LocalWrite on behalf of by.
func (p *InlinePayload) Prepare(
	keys *mem.Keys, by mem.Accessor, list []verbs.SGE, head, tail []byte,
) (bool, mem.Fault) {
	p.keys, p.by, p.head, p.tail = keys, by, head, tail
	left := uint32(len(head) + len(tail))
	for i := 0; left > 0; i++ {
		s := list[i]
		if s.Length = min(s.Length, left); s.Length == 0 {
			continue
		}
		if p.pieces == inlinePieces {
			return false, mem.OK
		}
		steady, fault := keys.Steady(by, s.LKey, s.Addr, int(s.Length), mem.LocalWrite)
		if !steady {
			return false, fault
		}
		p.list[p.pieces] = s
		p.pieces++
		left -= s.Length
	}
	return true, mem.OK
}

// store writes the payload at once.
func (p *InlinePayload) store() mem.Fault {
	list := p.list[:p.pieces]
	if fault := Scatter(p.keys, p.by, list, 0, p.head); fault != mem.OK || len(p.tail) == 0 {
		return fault
	}
	return Scatter(p.keys, p.by, list, uint32(len(p.head)), p.tail)
}
