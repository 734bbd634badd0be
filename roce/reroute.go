package roce

import "fmt"

// Reroute changes over which MAC addresses packets go to the peer: the first hop
// moved, or this end did. It works in every state in which the QP has an address
// vector, between two packets of a message too, because MAC addresses are not
// part of the connection: the peer does not see them, and no ICRC covers them. It
// needs the progress lock. The error is ErrState without an address vector.
func (q *QP) Reroute(src, dst [6]byte) error {
	if q.typ.Datagram() || q.attr.Path.Framing == 0 {
		return fmt.Errorf("%w: the QP has no address vector", ErrState)
	}
	next := q.attr
	next.Path.SrcMAC, next.Path.DstMAC = src, dst
	if err := q.setPath(&next); err != nil {
		return err
	}
	q.setAttr(&next)
	return nil
}
