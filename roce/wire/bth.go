package wire

import (
	"encoding/binary"
	"fmt"
)

// BTH, the base transport header (IBA 9.2). Every RoCE packet has one.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-+-+---+-------+-------------------------------+
//	|    OpCode     |S|M|Pad| TVer  |             P_Key             |
//	+-+-+-----------+-+-+---+-------+-------------------------------+
//	|F|B| reserved  |                    DestQP                     |
//	+-+-+-----------+-----------------------------------------------+
//	|A|  reserved   |                      PSN                      |
//	+-+-------------+-----------------------------------------------+

// BTHLen is the length of a BTH in bytes.
const BTHLen = 12

const (
	bthOffFlags = 1
	bthOffPKey  = 2
	bthOffECN   = 4
	bthOffAck   = 8
	bthOffPSN   = 9

	bthSE     = 1 << 7
	bthM      = 1 << 6
	bthFECN   = 1 << 7
	bthBECN   = 1 << 6
	bthAckReq = 1 << 7

	bthPadShift = 4
	bthTVer     = 0xf
)

// Values that RoCE uses in a BTH.
const (
	DefaultPKey = 0xFFFF   // the one P_Key of RoCE, full membership
	MulticastQP = 0xFFFFFF // DestQP of multicast packets
)

// BTH is the base transport header.
type BTH struct {
	Opcode Opcode
	SE     bool   // solicited event
	M      bool   // path migration state "migrated", the normal one
	PadCnt uint8  // bytes of padding between payload and ICRC, 0 to 3
	TVer   uint8  // transport version, 0
	PKey   uint16 // partition key
	FECN   bool   // forward congestion notification
	BECN   bool   // backward congestion notification, set in a CNP
	DestQP uint32 // destination queue pair, 24 bits
	AckReq bool   // the requester wants an acknowledgement of this PSN
	PSN    PSN    // packet sequence number
}

// ParseBTH reads a BTH. It returns ErrShort when b has fewer than BTHLen bytes.
func ParseBTH(b []byte) (BTH, error) {
	var h BTH
	if len(b) < BTHLen {
		return h, ErrShort
	}
	h.read((*[BTHLen]byte)(b))
	return h, nil
}

// read is ParseBTH in place. It spares the decoder a copy that would have to
// wait for all the single bytes just written.
func (h *BTH) read(b *[BTHLen]byte) {
	w := binary.BigEndian.Uint32(b[:])
	dqp := binary.BigEndian.Uint32(b[bthOffECN:])
	psn := binary.BigEndian.Uint32(b[bthOffAck:])
	h.Opcode = Opcode(w >> 24)
	h.SE = w&(bthSE<<16) != 0
	h.M = w&(bthM<<16) != 0
	h.PadCnt = uint8(w >> 20 & 3)
	h.TVer = uint8(w >> 16 & 0xf)
	h.PKey = uint16(w)
	h.FECN = dqp&(bthFECN<<24) != 0
	h.BECN = dqp&(bthBECN<<24) != 0
	h.DestQP = dqp & max24
	h.AckReq = psn&(bthAckReq<<24) != 0
	h.PSN = PSN(psn & max24)
}

// Put writes the header to b, which must have BTHLen bytes.
func (h BTH) Put(b []byte) { h.PutTo(b) }

// PutTo is Put in place: it spares a copy that would have to wait for all the single bytes
// just written.
func (h *BTH) PutTo(b []byte) {
	_ = b[BTHLen-1]
	b[0] = byte(h.Opcode)
	b[bthOffFlags] = bit(h.SE, bthSE) | bit(h.M, bthM) | h.PadCnt&3<<bthPadShift | h.TVer&bthTVer
	binary.BigEndian.PutUint16(b[bthOffPKey:], h.PKey)
	binary.BigEndian.PutUint32(b[bthOffECN:],
		uint32(bit(h.FECN, bthFECN)|bit(h.BECN, bthBECN))<<24|h.DestQP&max24)
	binary.BigEndian.PutUint32(b[bthOffAck:],
		uint32(bit(h.AckReq, bthAckReq))<<24|uint32(h.PSN)&max24)
}

// SetBTHPSN changes the PSN of the BTH that starts at b and nothing else. The
// ICRC has to be made again.
func SetBTHPSN(b []byte, psn PSN) {
	_ = b[BTHLen-1]
	putUint24(b[bthOffPSN:], uint32(psn))
}

// SetBTHAckReq changes the AckReq bit of the BTH that starts at b and nothing
// else. The ICRC has to be made again.
func SetBTHAckReq(b []byte, on bool) {
	_ = b[BTHLen-1]
	b[bthOffAck] = b[bthOffAck]&^bthAckReq | bit(on, bthAckReq)
}

// SetBTHDestQP changes the destination queue pair of the BTH that starts at b
// and nothing else. The ICRC has to be made again.
func SetBTHDestQP(b []byte, qpn uint32) {
	_ = b[BTHLen-1]
	putUint24(b[bthOffECN+1:], qpn)
}

// String prints the header with tshark's names (infiniband.bth.*). FECN and
// BECN have no name there.
func (h BTH) String() string {
	return fmt.Sprintf("bth.opcode=%s se=%d m=%d padcnt=%d tver=%d p_key=0x%04x fecn=%d "+
		"becn=%d destqp=0x%06x a=%d psn=0x%06x",
		h.Opcode, bit(h.SE, 1), bit(h.M, 1), h.PadCnt, h.TVer, h.PKey, bit(h.FECN, 1),
		bit(h.BECN, 1), h.DestQP, bit(h.AckReq, 1), uint32(h.PSN))
}
