package roce

import (
	"fmt"

	"xroce/roce/wire"
)

// Opcode is what a send work request asks for, with the values of enum
// ibv_wr_opcode.
type Opcode uint8

// The operations of a send queue.
const (
	OpWrite       Opcode = 0
	OpWriteImm    Opcode = 1
	OpSend        Opcode = 2
	OpSendImm     Opcode = 3
	OpRead        Opcode = 4
	OpCmpSwap     Opcode = 5
	OpFetchAdd    Opcode = 6
	OpLocalInv    Opcode = 7
	OpBindMW      Opcode = 8
	OpSendInv     Opcode = 9
	OpUMR         Opcode = 11 // IBV_WR_DRIVER1, as mlx5 has it
	OpFlush       Opcode = 14
	OpAtomicWrite Opcode = 15

	// OpRegMR is the kernel's name for what OpUMR does with a list.
	OpRegMR = OpUMR
)

// reply is how the peer answers an operation.
type reply uint8

const (
	replyAck    reply = iota // an acknowledge, which may cover many
	replyData                // READ responses: one without data for FLUSH and ATOMIC WRITE
	replyAtomic              // an atomic acknowledge with the old value
	replyNone                // nothing is sent: the work is done here
)

// onTypes is a set of QP types.
type onTypes uint16

const (
	onRC  onTypes = 1<<TypeRC | 1<<TypeXRCSend
	onUC  onTypes = 1 << TypeUC
	onUD  onTypes = 1<<TypeUD | 1<<TypeGSI
	onRaw onTypes = 1 << TypeRawPacket
	// The architecture has no FLUSH and no ATOMIC WRITE for XRC.
	onlyRC onTypes = 1 << TypeRC
)

// sendOp is what the requester must know of an operation.
type sendOp struct {
	name   string
	wc     WCOpcode
	on     onTypes
	reply  reply
	notify bool  // consumes a receive at the peer, may be solicited
	word   bool  // moves exactly eight bytes
	data   bool  // carries its data to the peer
	inline bool  // may take it from Inline
	write  bool  // its local memory is written
	count  bool  // counts against max_rd_atomic
	imm    uint8 // the 32-bit field of the last packet: see below

	// The packet opcodes by place in the message, in the service RC.
	first, middle, last, only wire.Opcode
}

// What sendWQE.imm stands for.
const (
	immNone = iota
	immData
	immKey
)

var sendOps = [...]sendOp{
	OpWrite: {
		name: "RDMA_WRITE", wc: WCWrite, on: onRC | onUC, data: true, inline: true,
		first: wire.RCWriteFirst, middle: wire.RCWriteMiddle, last: wire.RCWriteLast,
		only: wire.RCWriteOnly,
	},
	OpWriteImm: {
		name: "RDMA_WRITE_WITH_IMM", wc: WCWrite, on: onRC | onUC, data: true, inline: true,
		notify: true, imm: immData,
		first: wire.RCWriteFirst, middle: wire.RCWriteMiddle, last: wire.RCWriteLastImm,
		only: wire.RCWriteOnlyImm,
	},
	OpSend: {
		name: "SEND", wc: WCSend, on: onRC | onUC | onUD | onRaw, data: true, inline: true,
		notify: true,
		first:  wire.RCSendFirst, middle: wire.RCSendMiddle, last: wire.RCSendLast,
		only: wire.RCSendOnly,
	},
	OpSendImm: {
		name: "SEND_WITH_IMM", wc: WCSend, on: onRC | onUC | onUD, data: true, inline: true,
		notify: true, imm: immData,
		first: wire.RCSendFirst, middle: wire.RCSendMiddle, last: wire.RCSendLastImm,
		only: wire.RCSendOnlyImm,
	},
	OpRead: {
		name: "RDMA_READ", wc: WCRead, on: onRC, reply: replyData, write: true, count: true,
		only: wire.RCReadRequest,
	},
	OpCmpSwap: {
		name: "ATOMIC_CMP_AND_SWP", wc: WCCompSwap, on: onRC, reply: replyAtomic, word: true,
		write: true, count: true, only: wire.RCCmpSwap,
	},
	OpFetchAdd: {
		name: "ATOMIC_FETCH_AND_ADD", wc: WCFetchAdd, on: onRC, reply: replyAtomic, word: true,
		write: true, count: true, only: wire.RCFetchAdd,
	},
	OpLocalInv: {name: "LOCAL_INV", wc: WCLocalInv, on: onRC | onUC, reply: replyNone},
	OpBindMW:   {name: "BIND_MW", wc: WCBindMW, on: onRC | onUC, reply: replyNone},
	OpUMR:      {name: "UMR", wc: WCDriver1, on: onRC, reply: replyNone},
	OpSendInv: {
		name: "SEND_WITH_INV", wc: WCSend, on: onRC, data: true, inline: true, notify: true,
		imm:   immKey,
		first: wire.RCSendFirst, middle: wire.RCSendMiddle, last: wire.RCSendLastInv,
		only: wire.RCSendOnlyInv,
	},
	OpFlush: {
		name: "FLUSH", wc: WCFlush, on: onlyRC, reply: replyData, count: true,
		only: wire.RCFlush,
	},
	OpAtomicWrite: {
		name: "ATOMIC_WRITE", wc: WCAtomicWrite, on: onlyRC, reply: replyData, word: true,
		data: true, inline: true, count: true, only: wire.RCAtomicWrite,
	},
}

// String returns the operation as verbs spells it.
func (o Opcode) String() string {
	if int(o) < len(sendOps) && sendOps[o].name != "" {
		return sendOps[o].name
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// packet is the packet opcode of an operation at a place in its message.
func (op *sendOp) packet(isFirst, isLast bool) wire.Opcode {
	switch {
	case isFirst && isLast:
		return op.only
	case isFirst:
		return op.first
	case isLast:
		return op.last
	default:
		return op.middle
	}
}
