package msg

import "xroce/roce/verbs"

// nextRead asks for a part of a message that the peer lets us READ. Messages take turns, and
// so do peers; all of them together have so much on the way at once.
func (c *Conn) nextRead(wr *verbs.SendWR, f *flight) bool {
	e := c.endpoint
	a := c.pulls.first
	if a == nil {
		return false
	}
	n := min(a.want-a.asked, e.config.Chunk, e.config.PullWindow-e.pulling)
	if n <= 0 {
		if !c.throttled {
			c.throttled = true
			e.throttled = append(e.throttled, c)
		}
		return false
	}
	off := uint64(a.asked)
	wr.Opcode = verbs.OpRead
	wr.SGList = append(wr.SGList, verbs.SGE{
		Addr: a.local.Addr + off, Length: uint32(n), LKey: a.local.LKey,
	})
	wr.RemoteAddr, wr.RKey = a.remote.Addr+off, a.remote.RKey
	*f = flight{kind: flightRead, pull: a, n: n}
	a.asked += n
	e.pulling += n
	c.pulls.remove(a)
	if a.asked < a.want {
		c.pulls.push(a)
	}
	return true
}

// hasRead counts bytes that are here.
func (c *Conn) hasRead(a *arrival, n int) {
	e := c.endpoint
	e.pulling -= n
	a.done += n
	e.count.Add(BytesRead, n)
	e.unthrottle()
	if a.done == a.want {
		c.end(a)
	}
}

// unthrottle lets all go on that wait for the pull window.
func (e *Endpoint) unthrottle() {
	for i, c := range e.throttled {
		c.throttled, e.throttled[i] = false, nil
		c.wake()
	}
	e.throttled = e.throttled[:0]
}
