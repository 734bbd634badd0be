package tunnel

// How many connections a peer may have to us: one of each of its lanes, and as many that take their
// place. Each has 4 MiB of receives, so that of strangers is less.
const (
	peerPlaces     = 2 * MaxQueues
	strangerPlaces = 8
)

// places is how many connections a peer may have.
func (t *Tunnel) places(p *peer) int32 {
	if p.learned && t.config.Key == nil {
		return strangerPlaces
	}
	return peerPlaces
}

// try puts something into a channel if there is room.
func try(c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
		return false
	}
}

// crowded counts a request for which there is no place, and returns what whoever asks is told. A
// peer that began anew has the places of the one that was there before, once that has ended, and
// asks again until then. It shows first that it hears what is sent to its address, with a key that
// it has that, too: else who only has the address of a peer in what he sends could end its
// connections.
func (t *Tunnel) crowded(c *incoming, private []byte) []byte {
	p := c.peer
	p.counts.drop(dropPlaces)
	full := t.refusal(p.addr, errRoom)
	if p.instance.Load() == c.instance {
		return full
	}
	if t.config.Key == nil { // else it has shown that to be admitted
		if err := t.prove(&p.counts, p.addr, private); err != nil {
			return t.refusal(p.addr, err)
		}
	}
	t.in.leave(p, c.instance)
	return full
}
