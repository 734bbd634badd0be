package engine

import "xroce/roce"

// deadlines is a heap of QPs by the time at which they next want to be looked
// at. A QP is in it at most once. It is kept lazily: when a deadline moves
// later, as it does with every acknowledgement, the QP stays where it is, is
// looked at too early, and finds its new place then.
type deadlines struct{ heap []*QP }

// arm puts qp in, or moves it forward, to be looked at by time at.
func (d *deadlines) arm(qp *QP, at roce.Time) {
	switch {
	case qp.timerPos == 0:
		d.heap = append(d.heap, qp)
		qp.timerPos = len(d.heap)
	case at >= qp.timerAt:
		return
	}
	qp.timerAt = at
	d.up(qp.timerPos - 1)
}

// next returns the earliest time at which a QP wants to be looked at.
func (d *deadlines) next() (roce.Time, bool) {
	if len(d.heap) == 0 {
		return 0, false
	}
	return d.heap[0].timerAt, true
}

// pop takes out and returns a QP whose time has come, nil when there is none.
func (d *deadlines) pop(now roce.Time) *QP {
	if len(d.heap) == 0 || d.heap[0].timerAt > now {
		return nil
	}
	qp := d.heap[0]
	d.remove(qp)
	return qp
}

// remove takes qp out, if it is in.
func (d *deadlines) remove(qp *QP) {
	if qp.timerPos == 0 {
		return
	}
	i, last := qp.timerPos-1, len(d.heap)-1
	d.swap(i, last)
	d.heap[last] = nil
	d.heap = d.heap[:last]
	qp.timerPos = 0
	if i < last {
		d.up(i)
		d.down(i)
	}
}

func (d *deadlines) swap(i, j int) {
	d.heap[i], d.heap[j] = d.heap[j], d.heap[i]
	d.heap[i].timerPos, d.heap[j].timerPos = i+1, j+1
}

func (d *deadlines) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if d.heap[parent].timerAt <= d.heap[i].timerAt {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

func (d *deadlines) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d.heap); child++ {
			if d.heap[child].timerAt < d.heap[least].timerAt {
				least = child
			}
		}
		if least == i {
			return
		}
		d.swap(i, least)
		i = least
	}
}
