package engine

import "xroce/roce/counter"

// This file has counters of single QPs. A QP counts in the set of its queue, or on request in one
// of its own, which is added to that of the queue when somebody reads it and when that is
// ended or the QP closed: so counting costs a QP neither time nor, without a request, memory.

// CountQPs has QPs of the device count each by itself from now on, at most so many: those that
// Resources(most) has rows of, which then have Counters (rdma statistic qp set). Who does already
// goes on with its counts. A QP needs half a KiB more for it, until it is closed or that is ended.
func (d *Device) CountQPs(most int) {
	d.lock()
	defer d.unlock()
	n := 0
	for _, qp := range d.qps.All {
		if n >= most {
			break
		}
		n++
		qp.home().countApart(qp)
	}
}

// CountQPsTogether ends what CountQPs began, also of QPs that count by Options.CountQPs: the device
// keeps what they have counted. QPs that are made later count as the options say.
func (d *Device) CountQPsTogether() {
	d.lock()
	defer d.unlock()
	for _, qp := range d.qps.All {
		qp.home().countTogether(qp)
	}
}

// countApart has a QP that lives here count by itself. The caller holds the progress lock.
func (q *queue) countApart(qp *QP) {
	if q.counted[qp] != nil {
		return
	}
	if q.counted == nil {
		q.counted = map[*QP]*counter.Set{}
	}
	own := new(counter.Set)
	q.counted[qp] = own
	qp.core.CountInto(own)
}

// countTogether ends that: the queue keeps what the QP has counted. The caller holds the progress
// lock.
func (q *queue) countTogether(qp *QP) {
	if own := q.counted[qp]; own != nil {
		delete(q.counted, qp)
		q.count.Merge(own)
		qp.core.CountInto(&q.count)
	}
}

// counts are those of a QP that moves to another queue: its own, or those of the queue. The caller
// holds both progress locks.
func (q *queue) counts(from *queue, qp *QP) *counter.Set {
	if own := from.counted[qp]; own != nil {
		return own
	}
	return &q.count
}

// takeCounts takes over the counts of a QP that has moved here. The caller holds both progress
// locks.
func (q *queue) takeCounts(from *queue, qp *QP) {
	own := from.counted[qp]
	if own == nil {
		return
	}
	delete(from.counted, qp)
	if q.counted == nil {
		q.counted = map[*QP]*counter.Set{}
	}
	q.counted[qp] = own
}

// allCounts adds up what was counted at the queue and by its QPs. The caller holds the progress
// lock.
func (q *queue) allCounts() counter.Set {
	sum := q.count
	for _, own := range q.counted {
		sum.Merge(own)
	}
	return sum
}

// named are the counters of a set that are not 0, by name.
func named(set *counter.Set) map[string]uint64 {
	m := map[string]uint64{}
	for id, n := range set {
		if n != 0 {
			m[counter.ID(id).String()] = n
		}
	}
	return m
}
