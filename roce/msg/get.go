package msg

import "xroce/roce/verbs"

// leastRead is how many bytes a peer may be asked for when others have the whole window.
const leastRead = 4096

// mayRead is how many bytes more this peer may be asked for: as many as stay free for others, so
// that no peer, however slow it is, has all of the window, and one that comes later has a share
// at once. (A queue of a shared buffer is bounded so: dynamic thresholds of Choudhury and Hahne.)
// A little there is for each, whatever the others have.
func (c *Conn) mayRead() int {
	e := c.endpoint
	share := (e.config.PullWindow - e.pulling - c.pulling) / 2
	if c.pulling == 0 {
		return max(share, leastRead)
	}
	return share
}

// nextRead asks for a part of a message that the peer lets us READ. Messages take turns, and
// so do peers; all of them together have so much on the way at once.
func (c *Conn) nextRead(r *Rail, wr *verbs.SendWR, f *flight) bool {
	e := c.endpoint
	a := c.pulls.First()
	if a == nil {
		return false
	}
	n, may := c.stripe(a.want-a.asked), c.mayRead()
	if len(a.again) > 0 {
		n = a.again[len(a.again)-1].n
	}
	if may < n && may < leastRead { // the rest of a share is not worth a READ
		if !c.throttled {
			c.throttled = true
			e.throttled = append(e.throttled, c)
		}
		return false
	}
	at := cut(&a.again, &a.asked, a.want, min(n, may))
	here, there := a.local.By(r.ours), a.remote.By(r.theirs)
	wr.Opcode = verbs.OpRead
	wr.SGList = append(wr.SGList, verbs.SGE{
		Addr: here.Addr + uint64(at.off), Length: uint32(at.n), LKey: here.LKey,
	})
	wr.RemoteAddr, wr.RKey = there.Addr+uint64(at.off), there.RKey
	*f = flight{kind: flightRead, pull: a, off: at.off, n: at.n}
	e.pulling += at.n
	c.pulling += at.n
	c.pulls.Remove(&a.links)
	if a.asked < a.want || len(a.again) > 0 {
		c.pulls.Push(&a.links, a)
	}
	return true
}

// hasRead counts bytes that are here.
func (c *Conn) hasRead(a *arrival, n int) {
	e := c.endpoint
	e.pulling -= n
	c.pulling -= n
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
