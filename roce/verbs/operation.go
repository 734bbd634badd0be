package verbs

import "xroce/roce/wire"

// Reply is the kind of response that the peer gives an operation.
type Reply uint8

// The kinds of response.
const (
	ReplyAck    Reply = iota // an acknowledge, which may cover many
	ReplyData                // READ responses: one without data for FLUSH and ATOMIC WRITE
	ReplyAtomic              // an atomic acknowledge with the old value
	ReplyNone                // nothing is sent: the work is done here
)

// ImmKind is what the 32-bit field of an operation's last packet stands for.
type ImmKind uint8

// The kinds of that field.
const (
	ImmNone ImmKind = iota // there is none
	ImmData                // immediate data
	ImmKey                 // the key to invalidate
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

// An Op is what the requester must know of an operation.
type Op struct {
	Name   string   // as verbs spells it
	WC     WCOpcode // of its completion
	on     onTypes  // see MayPost
	Reply  Reply
	Notify bool // consumes a receive at the peer, may be solicited
	Word   bool // moves exactly eight bytes
	Inline bool // may take its data from SendWR.Inline
	Write  bool // its local memory is written
	Count  bool // counts against MAX_QP_RD_ATOMIC
	Imm    ImmKind

	// The packet opcodes by place in the message, in the service RC. An operation of
	// one packet has Only alone.
	First, Middle, Last, Only wire.Opcode
}

// ops are the operations by opcode. Nothing changes them.
var ops = [...]Op{
	OpWrite: {
		Name: "RDMA_WRITE", WC: WCWrite, on: onRC | onUC, Inline: true,
		First: wire.RCWriteFirst, Middle: wire.RCWriteMiddle, Last: wire.RCWriteLast,
		Only: wire.RCWriteOnly,
	},
	OpWriteImm: {
		Name: "RDMA_WRITE_WITH_IMM", WC: WCWrite, on: onRC | onUC, Inline: true,
		Notify: true, Imm: ImmData,
		First: wire.RCWriteFirst, Middle: wire.RCWriteMiddle, Last: wire.RCWriteLastImm,
		Only: wire.RCWriteOnlyImm,
	},
	OpSend: {
		Name: "SEND", WC: WCSend, on: onRC | onUC | onUD | onRaw, Inline: true,
		Notify: true,
		First:  wire.RCSendFirst, Middle: wire.RCSendMiddle, Last: wire.RCSendLast,
		Only: wire.RCSendOnly,
	},
	OpSendImm: {
		Name: "SEND_WITH_IMM", WC: WCSend, on: onRC | onUC | onUD, Inline: true,
		Notify: true, Imm: ImmData,
		First: wire.RCSendFirst, Middle: wire.RCSendMiddle, Last: wire.RCSendLastImm,
		Only: wire.RCSendOnlyImm,
	},
	OpRead: {
		Name: "RDMA_READ", WC: WCRead, on: onRC, Reply: ReplyData, Write: true, Count: true,
		Only: wire.RCReadRequest,
	},
	OpCmpSwap: {
		Name: "ATOMIC_CMP_AND_SWP", WC: WCCompSwap, on: onRC, Reply: ReplyAtomic, Word: true,
		Write: true, Count: true, Only: wire.RCCmpSwap,
	},
	OpFetchAdd: {
		Name: "ATOMIC_FETCH_AND_ADD", WC: WCFetchAdd, on: onRC, Reply: ReplyAtomic, Word: true,
		Write: true, Count: true, Only: wire.RCFetchAdd,
	},
	OpLocalInv: {Name: "LOCAL_INV", WC: WCLocalInv, on: onRC | onUC, Reply: ReplyNone},
	OpBindMW:   {Name: "BIND_MW", WC: WCBindMW, on: onRC | onUC, Reply: ReplyNone},
	OpUMR:      {Name: "UMR", WC: WCDriver1, on: onRC, Reply: ReplyNone},
	OpSendInv: {
		Name: "SEND_WITH_INV", WC: WCSend, on: onRC, Inline: true, Notify: true,
		Imm:   ImmKey,
		First: wire.RCSendFirst, Middle: wire.RCSendMiddle, Last: wire.RCSendLastInv,
		Only: wire.RCSendOnlyInv,
	},
	OpFlush: {
		Name: "FLUSH", WC: WCFlush, on: onlyRC, Reply: ReplyData, Count: true,
		Only: wire.RCFlush,
	},
	OpAtomicWrite: {
		Name: "ATOMIC_WRITE", WC: WCAtomicWrite, on: onlyRC, Reply: ReplyData, Word: true,
		Inline: true, Count: true, Only: wire.RCAtomicWrite,
	},
}

// Packet returns the packet opcode of an operation at a place in its message.
func (op *Op) Packet(isFirst, isLast bool) wire.Opcode {
	switch {
	case isFirst && isLast:
		return op.Only
	case isFirst:
		return op.First
	case isLast:
		return op.Last
	default:
		return op.Middle
	}
}

// MayPost reports whether a QP of this type may post the operation.
func (t QPType) MayPost(o Opcode) bool { return int(o) < len(ops) && ops[o].on&(1<<t) != 0 }
