package roce

import "xroce/roce/counter"

// CountInto has the QP count in another set from now on: one of its own, or that of its queue.
// It needs the progress lock.
func (q *QP) CountInto(count *counter.Set) { q.count = count }

// AddRcvdBytes counts the bytes of a packet that the QP is handed next. It needs the progress
// lock.
func (q *QP) AddRcvdBytes(n int) { q.count.Add(counter.RcvdBytes, uint64(n)) }
