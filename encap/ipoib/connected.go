package ipoib

import "encoding/binary"

// serviceIDBase is that of connected mode, of the IETF (RFC 4755 section 3.5).
const serviceIDBase = 0x10 << 56

// ServiceID is the service ID at which an interface takes connections, by the number of its queue
// pair for datagrams, as Linux has it (IPOIB_CM_IETF_ID).
func ServiceID(qpn uint32) uint64 { return serviceIDBase | uint64(qpn&maxQPN) }

// ConnectDataLen is the length of ConnectData in bytes.
const ConnectDataLen = 8

// ConnectData is the private data of a request for a connection, and of the answer to one (RFC
// 4755 section 6).
type ConnectData struct {
	QPN uint32 // of the sender's queue pair for datagrams, 24 bits
	MTU uint32 // of what it receives, in bytes with the header of IPoIB
}

// Put writes the data into the first ConnectDataLen bytes of b.
func (d ConnectData) Put(b []byte) {
	binary.BigEndian.PutUint32(b, d.QPN&maxQPN)
	binary.BigEndian.PutUint32(b[4:], d.MTU)
}

// ParseConnectData reads the first ConnectDataLen bytes of b; private data is padded with zeros.
// The error is ErrShort. The MTU is what the peer says: it may be any.
func ParseConnectData(b []byte) (ConnectData, error) {
	if len(b) < ConnectDataLen {
		return ConnectData{}, ErrShort
	}
	return ConnectData{
		QPN: binary.BigEndian.Uint32(b) & maxQPN, MTU: binary.BigEndian.Uint32(b[4:]),
	}, nil
}
