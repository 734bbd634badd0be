package wire

const (
	sportBase      = 0xC000 // the dynamic ports (RFC 6335)
	sportHashMask  = 1<<14 - 1
	flowLabelMask  = 1<<20 - 1
	flowLabelShift = 14
)

// SourcePort is the UDP source port of a connection: a hash that spreads
// connections over paths and is the same in both directions. It follows kernel
// include/rdma/ib_verbs.h rdma_get_udp_sport: the flow label of the address
// vector when there is one, else the product of the two QP numbers. The order
// of the QP numbers does not matter. A receiver never checks the port.
func SourcePort(flowLabel, qpn1, qpn2 uint32) uint16 {
	fl := uint64(flowLabel & flowLabelMask)
	if fl == 0 {
		v := uint64(qpn1&max24) * uint64(qpn2&max24)
		v ^= v >> 20
		v ^= v >> 40
		fl = v & flowLabelMask
	}
	return sportBase | uint16(fl&sportHashMask^fl>>flowLabelShift)
}
