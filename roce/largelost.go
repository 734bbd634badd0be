package roce

import "xroce/roce/wire"

// A path can lose large packets alone: a switch on it has a smaller MTU than its ends, and says
// nothing. To the requester that looks like a peer that is gone. So beside the last repetition of
// a large packet it sends a small one, the question of the keepalive, which costs no PSN and no
// retry. What is answered then tells that large packets alone are lost: VendorLargeLost.

// largePayload is the payload that every Ethernet takes: what is longer is a large packet.
const largePayload = 1024

// lastRetry is called when nothing is left of RETRY_CNT: has the peer asked, if what it does not
// acknowledge or answer with is large.
func (r *requester) lastRetry() {
	w := r.oldest()
	off := r.una.Sub(uint32(w.first))
	if min(w.length-uint32(off)*r.pmtu(), r.pmtu()) > largePayload {
		r.alive.state = smallDue
	}
}

// putSmall writes the small packet, when the rate allows one.
func (r *requester) putSmall(now Time, frame []byte) int {
	if r.paced = r.pace.Early(now); r.paced {
		return 0
	}
	r.alive.state = smallAsked
	n := r.putQuestion(frame)
	r.pace.Spend(now, n)
	return n
}

// hearSmall notes a response, which acknowledges nothing new: progress forgets it else. That the
// peer has no receive is said of the large packet, so that one has arrived.
func (r *requester) hearSmall(p *wire.Packet) {
	if r.alive.state == smallAsked && p.Spec.Is(wire.ClassAck) &&
		p.AETH().Syndrome.Kind() != wire.KindRNRNAK {
		r.alive.state = smallAnswered
	}
}

// forgetSmall is called when something was acknowledged.
func (r *requester) forgetSmall() {
	if r.alive.state >= smallDue {
		r.alive.state = keepaliveQuiet
	}
}
