package roce

// WCOpcode is what a completed work request was, with the values of enum
// ibv_wc_opcode.
type WCOpcode uint8

// The completion opcodes.
const (
	WCSend            WCOpcode = 0
	WCWrite           WCOpcode = 1
	WCRead            WCOpcode = 2
	WCRecv            WCOpcode = 128
	WCRecvRDMAWithImm WCOpcode = 129
)

// String returns the opcode as verbs spells it.
func (o WCOpcode) String() string {
	switch o {
	case WCSend:
		return "SEND"
	case WCWrite:
		return "RDMA_WRITE"
	case WCRead:
		return "RDMA_READ"
	case WCRecv:
		return "RECV"
	case WCRecvRDMAWithImm:
		return "RECV_RDMA_WITH_IMM"
	}
	return "unknown"
}

// WCFlags tell what else a completion carries.
type WCFlags uint8

// WCWithImm says that Imm is valid.
const WCWithImm WCFlags = 1 << 1

// A Completion is a completion queue entry (CQE, struct ibv_wc). When Status is
// not success only WRID, Status and QPN are valid.
type Completion struct {
	WRID    uint64
	Status  Status
	Opcode  WCOpcode
	Flags   WCFlags
	QPN     uint32
	ByteLen uint32 // RECV: bytes of the message; READ: bytes read
	Imm     uint32 // immediate data, read big-endian
	Time    Time   // when the transport completed it
}
