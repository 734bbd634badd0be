package wire

// Hold copies the packet to buf, so that it can be handled when its frame has
// long been reused: everything from the network header through the ICRC. held
// answers as p does, except that its payload is in one piece and that the VCRC of
// a native packet is gone. It borrows buf as p borrows the frame.
//
// ok is false, and held empty, when buf has fewer than NetworkLen bytes or
// nothing was decoded. Nothing is allocated.
func (p *Packet) Hold(buf []byte) (held Packet, ok bool) {
	n := p.NetworkLen()
	if n == 0 || n > len(buf) {
		return Packet{}, false
	}
	buf = buf[:n:n]
	m := copy(buf, p.head[p.net:])
	copy(buf[m:], p.tail)

	held = *p
	held.head, held.tail = buf, nil
	held.net, held.bth, held.end = 0, p.bth-p.net, n
	start := held.bth + BTHLen + int(p.Spec.HeaderLen)
	end := start + p.PayloadLen()
	held.Payload, held.PayloadTail = buf[start:end:end], nil
	return held, true
}
