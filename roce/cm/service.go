package cm

import "fmt"

// ServiceID names what a listener offers (IBA 12.3.2).
type ServiceID uint64

// PortSpace is the family of ports of a service ID, as in enum rdma_port_space.
type PortSpace uint16

// The port spaces of rdma_cm. Those but PortSpaceIB have one transport service.
const (
	PortSpaceIPoIB PortSpace = 0x0002 // datagrams
	PortSpaceTCP   PortSpace = 0x0106 // reliable connections
	PortSpaceUDP   PortSpace = 0x0111 // datagrams
	PortSpaceIB    PortSpace = 0x013f // any
)

// QKeyUDP is the Q_Key of datagram QPs that rdma_cm sets up (kernel
// include/rdma/rdma_cm.h, RDMA_UDP_QKEY).
const QKeyUDP = 0x01234567

// ServiceIDOf is the service ID of a port (IBA A11.2).
func ServiceIDOf(ps PortSpace, port uint16) ServiceID {
	return ServiceID(ps)<<16 | ServiceID(port)
}

// PortSpace returns the port space of a service ID of rdma_cm.
func (s ServiceID) PortSpace() PortSpace { return PortSpace(s >> 16) }

// Port returns the port of a service ID of rdma_cm.
func (s ServiceID) Port() uint16 { return uint16(s) }

// IP reports whether the service ID is one of rdma_cm: requests to it begin with
// an IPHeader.
func (s ServiceID) IP() bool {
	if s>>32 != 0 {
		return false
	}
	switch s.PortSpace() {
	case PortSpaceIPoIB, PortSpaceTCP, PortSpaceUDP, PortSpaceIB:
		return true
	}
	return false
}

// String prints the number.
func (s ServiceID) String() string { return fmt.Sprintf("0x%016x", uint64(s)) }
