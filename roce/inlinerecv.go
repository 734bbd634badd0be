package roce

import (
	"xroce/roce/mem"
	"xroce/roce/queue"
)

// Inline receive (scatter to CQE, as mlx5 has it): the completion of a small SEND, of a
// small READ response, or of an atomic response carries the payload. This file has the
// part of the queue pair; see package queue for what becomes of it.

// inlines prepares the payload of a packet for the completion of a work request with
// these pieces, and reports whether that can carry it. The fault is that of memory that
// cannot take it at all.
func (t *transport) inlines(
	in *queue.InlinePayload, by mem.Accessor, list []SGE, head, tail []byte,
) (bool, mem.Fault) {
	if n := len(head) + len(tail); n > int(t.inline) || n == 0 {
		return false, mem.OK
	}
	return in.Prepare(t.keys(), by, list, head, tail)
}
