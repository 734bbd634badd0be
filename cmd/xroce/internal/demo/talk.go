package demo

import (
	"fmt"

	"xroce/roce"
	"xroce/roce/wire"
)

// A call is an operation that was carried out and must be in the capture.
type call struct {
	from    int // the host that asked for it
	op      roce.Opcode
	size    int  // bytes
	refused bool // the other host must not have done it
}

// A talk is what the QPs of a pair said to each other.
type talk struct {
	service wire.Service
	pmtu    wire.MTU
	qpn     [2]uint32   // of each host
	first   [2]wire.PSN // of each host's first request
	calls   []call
	torn    bool // it is unknown how much was carried before it ended
}

// carried notes an operation that was posted.
func (t *talk) carried(from int, op roce.Opcode, size int) {
	t.calls = append(t.calls, call{from: from, op: op, size: size})
}

// refused notes that the last operation was refused.
func (t *talk) refused() { t.calls[len(t.calls)-1].refused = true }

// reliable reports whether requests are answered.
func (t *talk) reliable() bool {
	return t.service == wire.ServiceRC || t.service == wire.ServiceXRC
}

// describe names a call.
func (t *talk) describe(c call) string {
	return fmt.Sprintf("%s %s of %d bytes", t.service, c.op, c.size)
}

// places are the packet opcodes of a message in service RC.
type places struct{ first, middle, last, only wire.Opcode }

// messages are the requests of the operations that carry any number of bytes.
var messages = map[roce.Opcode]places{
	roce.OpSend: {
		wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLast, wire.RCSendOnly,
	},
	roce.OpSendImm: {
		wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLastImm, wire.RCSendOnlyImm,
	},
	roce.OpSendInv: {
		wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLastInv, wire.RCSendOnlyInv,
	},
	roce.OpWrite: {
		wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLast, wire.RCWriteOnly,
	},
	roce.OpWriteImm: {
		wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLastImm, wire.RCWriteOnlyImm,
	},
}

// readAnswer are the packets that answer a READ.
var readAnswer = places{
	wire.RCReadRespFirst, wire.RCReadRespMiddle, wire.RCReadRespLast, wire.RCReadRespOnly,
}

// single are the operations of one request and one answer, with the bytes of data
// that the request carries.
var single = map[roce.Opcode]struct {
	request, answer wire.Opcode
	payload         int
}{
	roce.OpFetchAdd:    {wire.RCFetchAdd, wire.RCAtomicAck, 0},
	roce.OpCmpSwap:     {wire.RCCmpSwap, wire.RCAtomicAck, 0},
	roce.OpAtomicWrite: {wire.RCAtomicWrite, wire.RCReadRespOnly, word},
	roce.OpFlush:       {wire.RCFlush, wire.RCReadRespOnly, 0},
}

// packets lists the packets that an operation must produce: the requests, and the
// answers but for acknowledgements.
func (t *talk) packets(c call) (requests, answers []seen) {
	if s, ok := single[c.op]; ok {
		return []seen{{opcode: t.opcode(s.request), payload: s.payload}},
			[]seen{{opcode: t.opcode(s.answer)}}
	}
	if c.op == roce.OpRead {
		return []seen{{opcode: t.opcode(wire.RCReadRequest)}}, t.pieces(readAnswer, c.size)
	}
	return t.pieces(messages[c.op], c.size), nil
}

// pieces are the packets of a message.
func (t *talk) pieces(p places, size int) []seen {
	pmtu := t.pmtu.Bytes()
	if size <= pmtu {
		return []seen{{opcode: t.opcode(p.only), payload: size}}
	}
	list := []seen{{opcode: t.opcode(p.first), payload: pmtu}}
	left := size - pmtu
	for ; left > pmtu; left -= pmtu {
		list = append(list, seen{opcode: t.opcode(p.middle), payload: pmtu})
	}
	return append(list, seen{opcode: t.opcode(p.last), payload: left})
}

// opcode is an opcode of RC in the service of the talk.
func (t *talk) opcode(op wire.Opcode) wire.Opcode {
	own, ok := t.service.Opcode(op)
	if !ok {
		panic(fmt.Sprintf("demo: %s has no %s", t.service, op))
	}
	return own
}

// resume takes away the requests that asked for the rest of a READ again, whose PSNs are those of
// its responses, and counts them. There the responses may begin anew.
func (t *talk) resume(asked stream, want []seen, got stream, psn wire.PSN) (stream, int) {
	anew := map[wire.Opcode]wire.Opcode{
		t.opcode(readAnswer.middle): t.opcode(readAnswer.first),
		t.opcode(readAnswer.last):   t.opcode(readAnswer.only),
	}
	again := 0
	for _, a := range asked {
		if a.opcode != t.opcode(wire.RCReadRequest) || !a.psn.InWindow(psn, uint32(len(want))) {
			break
		}
		i := int(a.psn.Diff(psn))
		if i < len(got) && got[i].opcode == anew[want[i].opcode] {
			want[i].opcode = got[i].opcode
		}
		again++
	}
	return asked[again:], again
}
