package wire

// on is a set of services that have an operation.
type on uint8

const (
	onRC  on = 1 << ServiceRC
	onUC  on = 1 << ServiceUC
	onRD  on = 1 << ServiceRD
	onUD  on = 1 << ServiceUD
	onCNP on = 1 << ServiceCNP
	onXRC on = 1 << ServiceXRC
	onMfr on = 1 << ServiceMfr

	onR   = onRC | onRD | onXRC // what acknowledges
	onC   = onRC | onXRC        // what can invalidate
	onAll = onR | onUC
)

// Combinations of class bits that recur.
const (
	reqSend  = ClassRequest | ClassSend
	reqWrite = ClassRequest | ClassWrite
	rspRead  = ClassResponse | ClassRead

	endSend = ClassSolicited | ClassReceive // last packet of a SEND
	endImm  = endSend | ClassImm            // last packet with immediate

	withAck = HasAETH | HasAPSN // an acknowledge rides on the request
)

// operations is the table as the architecture prints it: the operation in the
// low five bits, the services that have it, the headers that every service has
// (RDETH, XRCETH and DETH are added by the service), and the payload rule.
var operations = []struct {
	code    uint8
	name    string
	on      on
	headers HeaderSet
	payload PayloadRule
	class   Class
}{
	{0x00, "SEND_FIRST", onAll, 0, PayloadFull, reqSend | ClassFirst},
	{0x01, "SEND_MIDDLE", onAll, 0, PayloadFull, reqSend | ClassMiddle},
	{0x02, "SEND_LAST", onAll, 0, PayloadPartial, reqSend | ClassLast | endSend},
	{0x03, "SEND_LAST_IMM", onAll, HasImmDt, PayloadPartial, reqSend | ClassLast | endImm},
	{0x04, "SEND_ONLY", onAll | onUD, 0, PayloadAny, reqSend | ClassOnly | endSend},
	{0x05, "SEND_ONLY_IMM", onAll | onUD, HasImmDt, PayloadAny, reqSend | ClassOnly | endImm},
	{0x06, "WRITE_FIRST", onAll, HasRETH, PayloadFull, reqWrite | ClassFirst},
	{0x07, "WRITE_MIDDLE", onAll, 0, PayloadFull, reqWrite | ClassMiddle},
	{0x08, "WRITE_LAST", onAll, 0, PayloadPartial, reqWrite | ClassLast},
	{0x09, "WRITE_LAST_IMM", onAll, HasImmDt, PayloadPartial, reqWrite | ClassLast | endImm},
	{0x0A, "WRITE_ONLY", onAll, HasRETH, PayloadAny, reqWrite | ClassOnly},
	{
		0x0B, "WRITE_ONLY_IMM", onAll, HasRETH | HasImmDt, PayloadAny,
		reqWrite | ClassOnly | endImm,
	},
	{0x0C, "READ_REQUEST", onR, HasRETH, PayloadNone, ClassRequest | ClassRead | ClassOnly},
	{0x0D, "READ_RESP_FIRST", onR, HasAETH, PayloadFull, rspRead | ClassFirst},
	{0x0E, "READ_RESP_MIDDLE", onR, 0, PayloadFull, rspRead | ClassMiddle},
	{0x0F, "READ_RESP_LAST", onR, HasAETH, PayloadPartial, rspRead | ClassLast},
	{0x10, "READ_RESP_ONLY", onR, HasAETH, PayloadAny, rspRead | ClassOnly},
	{0x11, "ACK", onR, HasAETH, PayloadNone, ClassResponse | ClassAck | ClassOnly},
	{
		0x12, "ATOMIC_ACK", onR, HasAETH | HasAtomicAckETH, PayloadNone,
		ClassResponse | ClassAck | ClassAtomic | ClassOnly,
	},
	{0x13, "CMP_SWAP", onR, HasAtomicETH, PayloadNone, ClassRequest | ClassAtomic | ClassOnly},
	{0x14, "FETCH_ADD", onR, HasAtomicETH, PayloadNone, ClassRequest | ClassAtomic | ClassOnly},
	{0x15, "RESYNC", onRD, 0, PayloadNone, ClassRequest | ClassOnly},
	{0x16, "SEND_LAST_INV", onC, HasIETH, PayloadPartial, reqSend | ClassLast | endSend | ClassInv},
	{0x17, "SEND_ONLY_INV", onC, HasIETH, PayloadAny, reqSend | ClassOnly | endSend | ClassInv},
	{0x1C, "FLUSH", onRC, HasFETH | HasRETH, PayloadNone, ClassRequest | ClassFlush | ClassOnly},
	{0x1D, "ATOMIC_WRITE", onRC, HasRETH, Payload8, ClassRequest | ClassAtomicWrite | ClassOnly},
	{0x01, "CNP", onCNP, 0, Payload16, ClassOnly},
	{
		0x04, "SEND_ONLY_ACK", onMfr, withAck, PayloadAny, reqSend | ClassOnly | endSend,
	},
	{
		0x05, "SEND_ONLY_IMM_ACK", onMfr, withAck | HasImmDt, PayloadAny,
		reqSend | ClassOnly | endImm,
	},
	{0x0A, "WRITE_ONLY_ACK", onMfr, withAck | HasRETH, PayloadAny, reqWrite | ClassOnly},
	{
		0x0B, "WRITE_ONLY_IMM_ACK", onMfr, withAck | HasRETH | HasImmDt, PayloadAny,
		reqWrite | ClassOnly | endImm,
	},
	{
		0x11, "SELECTIVE_ACK", onMfr, HasAETH, Payload32,
		ClassResponse | ClassAck | ClassOnly,
	},
}

// opcodes is the table. It is built once and never written again.
var opcodes = buildOpcodes()

func buildOpcodes() (t [256]OpcodeSpec) {
	for i := range t {
		t[i].Service = Service(i >> 5)
	}
	for _, op := range operations {
		for svc := ServiceRC; svc <= ServiceMfr; svc++ {
			if op.on&(1<<svc) == 0 {
				continue
			}
			s := &t[uint8(svc)<<5|op.code]
			s.Name = svc.String() + "_" + op.name
			if svc == ServiceCNP {
				s.Name = op.name
			}
			s.Known, s.Payload, s.Class = true, op.payload, op.class
			s.Headers = op.headers | serviceHeaders(svc, op.class)
			switch {
			case op.class&ClassRequest == 0:
			case onR&(1<<svc) != 0:
				s.Response = Opcode(svc)<<5 | responseTo(op.class)
			case svc == ServiceMfr: // packets of a reliable connection
				s.Response = responseTo(op.class)
			}
			s.place()
		}
	}
	return t
}

// serviceHeaders are the headers that a service puts before the operation's own.
func serviceHeaders(svc Service, c Class) HeaderSet {
	request := c&ClassRequest != 0
	switch {
	case svc == ServiceUD:
		return HasDETH
	case svc == ServiceRD && request:
		return HasRDETH | HasDETH
	case svc == ServiceRD:
		return HasRDETH
	case svc == ServiceXRC && request:
		return HasXRCETH
	default:
		return 0
	}
}

// responseTo is the opcode, as RC has it, of the response to a request of class c.
func responseTo(c Class) Opcode {
	switch {
	case c&ClassAtomic != 0:
		return RCAtomicAck
	case c&(ClassRead|ClassFlush|ClassAtomicWrite) != 0:
		return RCReadRespOnly
	default:
		return RCAck
	}
}

// place computes where each header stands.
func (s *OpcodeSpec) place() {
	off := uint8(BTHLen)
	for h := range Header(NumHeaders) {
		if s.Headers&(1<<h) != 0 {
			s.Offsets[h] = off
			off += uint8(h.Len())
		}
	}
	s.HeaderLen = off - BTHLen
}
