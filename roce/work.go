package roce

import "fmt"

// An SGE is one piece of local memory: Length bytes at Addr of the region with
// this LKey. A Length of 0 is nothing.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// Opcode is what a send work request asks for, with the values of enum
// ibv_wr_opcode.
type Opcode uint8

// The operations of a send queue.
const (
	OpWrite    Opcode = 0
	OpWriteImm Opcode = 1
	OpSend     Opcode = 2
	OpSendImm  Opcode = 3
	OpRead     Opcode = 4
)

// sendOp is what the requester must know of an operation.
type sendOp struct {
	name   string
	wc     WCOpcode
	write  bool // carries a RETH in its first packet
	read   bool // answered by data, counts against max_rd_atomic
	imm    bool // carries immediate data in its last packet
	notify bool // consumes a receive at the peer, may be solicited
}

var sendOps = [...]sendOp{
	OpWrite:    {name: "RDMA_WRITE", wc: WCWrite, write: true},
	OpWriteImm: {name: "RDMA_WRITE_WITH_IMM", wc: WCWrite, write: true, imm: true, notify: true},
	OpSend:     {name: "SEND", wc: WCSend, notify: true},
	OpSendImm:  {name: "SEND_WITH_IMM", wc: WCSend, imm: true, notify: true},
	OpRead:     {name: "RDMA_READ", wc: WCRead, read: true},
}

// String returns the operation as verbs spells it.
func (o Opcode) String() string {
	if int(o) < len(sendOps) {
		return sendOps[o].name
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// SendFlags modify a send work request, with the values of enum ibv_send_flags.
type SendFlags uint8

// The send flags.
const (
	// SendFence holds the request back until all earlier READs are complete.
	SendFence SendFlags = 1 << 0
	// SendSignaled asks for a completion; without it only a failure makes one.
	SendSignaled SendFlags = 1 << 1
	// SendSolicited raises a solicited event at the peer.
	SendSolicited SendFlags = 1 << 2

	sendFlagsKnown = SendFence | SendSignaled | SendSolicited
)

// A SendWR is a work request for the send queue. It is copied when posted.
type SendWR struct {
	WRID       uint64
	Opcode     Opcode
	Flags      SendFlags
	SGList     []SGE  // the data, in order
	Imm        uint32 // immediate data, sent big-endian (htobe32 of imm_data in verbs)
	RemoteAddr uint64 // WRITE and READ: address at the peer
	RKey       uint32 // WRITE and READ: key of the peer's region
}

// A RecvWR is a work request for the receive queue. It is copied when posted.
type RecvWR struct {
	WRID   uint64
	SGList []SGE
}

// MaxMessage is the longest message in bytes (IBA 9.3.2).
const MaxMessage = 1 << 31
