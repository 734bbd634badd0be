package wire

// DecodeNetwork is Decode from the network header on, whose EtherType says which: that of IPv4,
// IPv6 or EtherTypeV1. It is for those who took off themselves what lies before it, as readers of
// captures do; the packet then has no MAC addresses and no tag, unless they set them.
func (p *Packet) DecodeNetwork(etherType uint16, head, tail []byte) Reason {
	p.SrcMAC, p.DstMAC, p.Tags = [6]byte{}, [6]byte{}, Tags{}
	p.LRH = LRH{}
	p.net = 0
	r := NotRoCE
	switch etherType {
	case etherTypeIPv4:
		r = p.decodeIPv4(head, tail, 0)
	case etherTypeIPv6:
		r = p.decodeIPv6(head, tail, 0)
	case EtherTypeV1:
		r = p.decodeGRH(head, tail, FramingV1, 0)
	}
	if r != OK {
		p.refuse()
	}
	return r
}
