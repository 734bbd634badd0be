package roce

import (
	"xroce/roce/mem"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// sendWQE is an entry of the send queue. Its application part is written once
// when posted, the rest when the requester begins with it.
//
// An entry has to be small, so operations share the slots of their arguments, and the
// opcode says what they hold:
//
//	operation              remoteAddr  rkey    srqn     imm        pair                   pointer
//	SEND, WRITE,           address     key     SRQ      data, key  -                      -
//	ATOMIC WRITE
//	READ                   address     key     SRQ      -          looked at, -           -
//	FETCH_ADD, CMP_SWP     address     key     SRQ      -          compare or add, swap   -
//	FLUSH                  address     key     SRQ      FETH       length, -              -
//	SEND of a datagram     -           P_Key   -        data       QP, Q_Key              ah
//	                                   index
//	BIND_MW                address     window  new key  LKey       length, access         -
//	UMR                    -           -       -        -          -                      umr
//	LOCAL_INV              -           -       -        key        -                      -
//
// The slots that are named after their content may be used by their names. All others are
// written by the pack function of the operation and read by the function below it, which
// panics when the entry is of another operation.
type sendWQE struct {
	wrID       uint64
	remoteAddr uint64
	pair       [2]uint64
	ah         *AH
	umr        *mem.Configuration
	rkey       uint32
	srqn       uint32
	imm        uint32 // immediate data, or the key to invalidate
	length     uint32 // of the local memory
	opcode     Opcode
	flags      SendFlags
	numSGE     uint8

	// Valid once begun:
	overCredit  bool // begun without a credit
	first, last wire.PSN
	ssn         uint32 // number of the message, 24 bits
	since       mem.Epoch
}

// needsResponse reports whether the peer responds with more than an acknowledge, which
// may cover many requests.
func (w *sendWQE) needsResponse() bool { return w.opcode.Op().Reply != verbs.ReplyAck }

// want panics when the slots are read as those of another operation.
func want(is bool) {
	if !is {
		panic("roce: arguments of another operation")
	}
}

// looked is how many bytes for the result of a READ that is to begin were found present. That
// of an atomic is short enough to be looked at in one turn.
func (w *sendWQE) looked() uint32 {
	if w.opcode != OpRead {
		return 0
	}
	return uint32(w.pair[0])
}

// passLooked adds n bytes to looked.
func (w *sendWQE) passLooked(n int) {
	if w.opcode == OpRead {
		w.pair[0] += uint64(n)
	}
}

// packAtomic adds the operands of an atomic.
func (w *sendWQE) packAtomic(compareAdd, swap uint64) { w.pair = [2]uint64{compareAdd, swap} }

// atomic returns the operands of an atomic.
func (w *sendWQE) atomic() (compareAdd, swap uint64) {
	want(w.opcode.Op().Reply == verbs.ReplyAtomic)
	return w.pair[0], w.pair[1]
}

// packFlush adds what a FLUSH makes sure of, and for how many bytes.
func (w *sendWQE) packFlush(h wire.FETH, length uint32) {
	w.imm, w.pair[0] = uint32(h.PLT)|uint32(h.SEL)<<8, uint64(length)
}

// flush returns what packFlush was given.
func (w *sendWQE) flush() (h wire.FETH, length uint32) {
	want(w.opcode == OpFlush)
	return wire.FETH{PLT: uint8(w.imm), SEL: uint8(w.imm >> 8)}, uint32(w.pair[0])
}

// packDatagram adds where a datagram goes.
func (w *sendWQE) packDatagram(ah *AH, qpn, qkey uint32, pkeyIndex uint16) {
	w.ah, w.pair = ah, [2]uint64{uint64(qpn), uint64(qkey)}
	w.rkey = uint32(pkeyIndex)
}

// datagram returns where a datagram goes.
func (w *sendWQE) datagram() (ah *AH, qpn, qkey uint32) {
	want(w.ah != nil)
	return w.ah, uint32(w.pair[0]), uint32(w.pair[1])
}

// pkeyIndex returns which P_Key a datagram of QP 1 has.
func (w *sendWQE) pkeyIndex() uint16 {
	want(w.ah != nil)
	return uint16(w.rkey)
}

// packBind adds what a BIND_MW binds.
func (w *sendWQE) packBind(b *mem.Bind) {
	w.rkey, w.srqn, w.imm, w.remoteAddr = b.Window, b.NewKey, b.LKey, b.Addr
	w.pair = [2]uint64{b.Length, uint64(b.Access)}
}

// bind returns what packBind was given.
func (w *sendWQE) bind() mem.Bind {
	want(w.opcode == OpBindMW)
	return mem.Bind{
		Window: w.rkey, NewKey: w.srqn, LKey: w.imm, Addr: w.remoteAddr,
		Length: w.pair[0], Access: mem.Access(w.pair[1]),
	}
}

// packUMR adds what a UMR changes.
func (w *sendWQE) packUMR(u *mem.UMR) { w.umr = &mem.Configuration{UMR: *u} }

// configuration returns what packUMR was given, and how far it is done.
func (w *sendWQE) configuration() *mem.Configuration {
	want(w.opcode == OpUMR)
	return w.umr
}
