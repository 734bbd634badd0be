package wire

// CopyTo copies the packet to buf, so that it can be handled when its frame has
// long been reused: everything from the network header through the ICRC. The
// copy has the same headers as p; its payload is in one piece, and the VCRC of a
// native packet is gone. It borrows buf as p borrows the frame.
//
// ok is false, and kept empty, when buf has fewer than NetworkLen bytes or
// nothing was decoded. Nothing is allocated.
func (p *Packet) CopyTo(buf []byte) (kept Packet, ok bool) {
	n := p.NetworkLen()
	if n == 0 || n > len(buf) {
		return Packet{}, false
	}
	buf = buf[:n:n]
	m := copy(buf, p.head[p.net:])
	copy(buf[m:], p.tail)

	kept = *p
	kept.head, kept.tail = buf, nil
	kept.net, kept.bth, kept.end = 0, p.bth-p.net, n
	start := kept.bth + BTHLen + int(p.Spec.HeaderLen)
	end := start + p.PayloadLen()
	kept.Payload, kept.PayloadTail = buf[start:end:end], nil
	return kept, true
}
