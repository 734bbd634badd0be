package sim

import "xroce/roce"

// A transit is a frame on its way to the switch.
type transit struct {
	at        roce.Time
	order     uint64
	direction *direction
	port      *Port // that it is for
	frame     []byte
}

func (a transit) before(b transit) bool {
	return a.at < b.at || (a.at == b.at && a.order < b.order)
}

// transits is a heap of them by time, then by order of sending.
type transits []transit

func (h *transits) push(a transit) {
	*h = append(*h, a)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *transits) pop() transit {
	s := *h
	first, last := s[0], len(s)-1
	s[0], s[last] = s[last], transit{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s); child++ {
			if s[child].before(s[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
