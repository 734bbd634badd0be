package sim

import "xroce/roce"

// push adds a frame under way. The caller holds the network's lock.
func (p *Port) push(a arrival) {
	p.arrivals = append(p.arrivals, a)
	p.up(len(p.arrivals) - 1)
	p.Wake()
}

// pop takes out the frame that arrives first.
func (p *Port) pop() arrival {
	h := p.arrivals
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], arrival{}
	p.arrivals = h[:last]
	p.down(0)
	return first
}

// hasten lets a frame under way arrive at a time, unless it arrives before,
// and behind all frames that were sent until now.
func (p *Port) hasten(order uint64, at roce.Time, place uint64) {
	for i := range p.arrivals {
		if a := &p.arrivals[i]; a.order == order && a.at > at {
			a.at, a.order = at, place
			p.up(i)
			p.Wake()
			return
		}
	}
}

// hurry lets no frame under way arrive later than at a time.
func (p *Port) hurry(latest roce.Time) {
	for i := range p.arrivals {
		p.arrivals[i].at = min(p.arrivals[i].at, latest)
	}
	for i := len(p.arrivals)/2 - 1; i >= 0; i-- {
		p.down(i)
	}
	p.Wake()
}

// up moves entry i of the heap to its place, towards the front.
func (p *Port) up(i int) {
	for h := p.arrivals; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// down moves entry i of the heap to its place, towards the end.
func (p *Port) down(i int) {
	for h := p.arrivals; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
