package roce

import (
	"xroce/roce/counter"
	"xroce/roce/recovery"
)

// Rehome gives the QP to another queue: it counts there from now on, and its early packets wait
// where those of that queue do. It reports false, and changes nothing, while there are any. It
// needs the progress locks of both queues.
func (q *QP) Rehome(count *counter.Set, common *Common) bool {
	var buffers [2]*recovery.Reassembly
	n := 0
	if early := q.rsp.early; early != nil {
		buffers[n] = &early.buffer
		n++
	}
	if r, ok := q.req.recovery.(*selectiveRepeat); ok {
		buffers[n] = &r.data
		n++
	}
	for _, b := range buffers[:n] {
		if b.Len() > 0 {
			return false
		}
	}
	for _, b := range buffers[:n] {
		common.EarlyPool.Reserve()
		b.Init(common.EarlyPool)
	}
	q.posts.Lock() // a post looks at P_Keys
	q.count, q.common = count, common
	q.posts.Unlock()
	return true
}
