package analyze

import (
	"bytes"
	"encoding/binary"
	"testing"

	"xroce/roce/dissect"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// feed feeds a frame as it is.
func (r *rig) feed(frame []byte) {
	r.number++
	var packet dissect.Packet
	r.d.Dissect(dissect.LinkEthernet, frame, len(frame), &packet)
	r.a.Add(r.number, r.now, 0, &packet)
}

// both feeds packets of the first host, and then answers of the second.
func (r *rig) both(requests, answers []roctest.Packet) {
	r.t.Helper()
	for _, p := range requests {
		r.give(0, us, p)
	}
	for _, p := range answers {
		r.give(1, us, p)
	}
}

// list is a list of them.
func list(packets ...roctest.Packet) []roctest.Packet { return packets }

// send is a SEND of one packet, or a part of one.
func send(op wire.Opcode, psn wire.PSN, n int) roctest.Packet {
	return roctest.Packet{Opcode: op, PSN: psn, Payload: make([]byte, n)}
}

// ack is an acknowledgement.
func ack(psn wire.PSN, syndrome wire.Syndrome, msn uint32) roctest.Packet {
	return roctest.Packet{
		Opcode: wire.RCAck, PSN: psn, AETH: wire.AETH{Syndrome: syndrome, MSN: msn},
	}
}

// write is a WRITE of one packet that says how long it is.
func write(psn wire.PSN, n int, says uint32) roctest.Packet {
	return roctest.Packet{
		Opcode: wire.RCWriteOnly, PSN: psn, Payload: make([]byte, n),
		RETH: wire.RETH{DMALen: says},
	}
}

// padded feeds a SEND of 5 bytes, whose first byte of padding has a value.
func (r *rig) padded(value byte) {
	path := &r.paths[0]
	p := roctest.Packet{Opcode: wire.RCSendOnly, DestQP: 0x22, Payload: []byte("12345")}
	frame := p.Frame(path)
	frame[len(frame)-wire.ICRCLen-3] = value
	r.feed(frame[:path.Seal(frame, len(frame)-path.Len()-wire.ICRCLen, 0)])
}

// fragments feeds a UDP datagram in two fragments. It is a SEND where it goes to the port of RoCE.
func (r *rig) fragments(port uint16) {
	p := roctest.Packet{Opcode: wire.RCSendOnly, DestQP: 0x22, Payload: make([]byte, 64)}
	frame := p.Frame(&r.paths[0])
	binary.BigEndian.PutUint16(frame[36:], port)
	frame[20], frame[21] = 0, 0
	end := len(frame) - wire.ICRCLen
	binary.LittleEndian.PutUint32(frame[end:], wire.ICRC(wire.FramingV2IPv4, frame[14:end], nil))
	const first = 48
	for _, part := range []struct {
		field uint16
		data  []byte
	}{{0x2000, frame[34 : 34+first]}, {first / 8, frame[34+first:]}} {
		b := append(bytes.Clone(frame[:34]), part.data...)
		binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
		binary.BigEndian.PutUint16(b[20:], part.field)
		b[24], b[25] = 0, 0
		sum := uint32(0)
		for i := 14; i < 34; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
		sum = sum>>16 + sum&0xffff
		binary.BigEndian.PutUint16(b[24:], ^uint16(sum>>16+sum))
		r.feed(b)
	}
}

// ruleTests are, for each rule, packets of which the last breaks it and no other one, and packets
// like them that break none.
var ruleTests = map[Clause]struct{ broken, kept func(r *rig) }{
	FullPayload: {
		func(r *rig) { r.both(list(send(wire.RCSendFirst, 1, 300)), nil) },
		func(r *rig) {
			r.both(list(send(wire.RCSendFirst, 1, 256), send(wire.RCSendMiddle, 2, 256),
				send(wire.RCSendLast, 3, 44)), nil)
			r.both(nil, list(send(wire.RCSendFirst, 1, 1408), // agreed on
				send(wire.RCSendMiddle, 2, 1408), send(wire.RCSendLast, 3, 44)))
		},
	},
	MessageOrder: {
		func(r *rig) {
			r.both(list(send(wire.RCSendOnly, 1, 8), send(wire.RCSendMiddle, 2, 256)), nil)
		},
		func(r *rig) { // in the middle of what the capture did not see
			r.both(list(send(wire.RCSendMiddle, 1, 256), send(wire.RCSendLast, 2, 8),
				send(wire.RCSendOnly, 3, 8)), nil)
		},
	},
	MessageLength: {
		func(r *rig) { r.both(list(write(1, 8, 9)), nil) },
		func(r *rig) { r.both(list(write(1, 8, 8), write(2, 0, 0)), nil) },
	},
	ZeroPad: {
		func(r *rig) { r.padded(1) },
		func(r *rig) { r.padded(0) },
	},
	AckOfSent: {
		func(r *rig) {
			r.both(list(send(wire.RCSendOnly, 1, 8), send(wire.RCSendOnly, 2, 8)),
				list(ack(1, 0, 0), ack(9, 0, 0)))
		},
		func(r *rig) {
			r.both(list(send(wire.RCSendOnly, 1, 8), send(wire.RCSendOnly, 2, 8)),
				list(ack(1, 0, 0), ack(2, 0, 0)))
		},
	},
	MSNForward: {
		func(r *rig) {
			r.both(list(send(wire.RCSendOnly, 1, 8), send(wire.RCSendOnly, 2, 8)),
				list(ack(1, 0, 5), ack(2, 0, 4)))
		},
		func(r *rig) { // over the end of its 24 bits
			r.both(list(send(wire.RCSendOnly, 1, 8), send(wire.RCSendOnly, 2, 8)),
				list(ack(1, 0, 0xffffff), ack(2, 0, 0)))
		},
	},
	DMALength: {
		func(r *rig) {
			r.both(list(roctest.Packet{
				Opcode: wire.RCReadRequest, RETH: wire.RETH{DMALen: 1<<31 + 1},
			}), nil)
		},
		func(r *rig) {
			r.both(list(roctest.Packet{
				Opcode: wire.RCReadRequest, RETH: wire.RETH{DMALen: 1 << 31},
			}), nil)
		},
	},
	AtomicAligned: {
		func(r *rig) {
			r.both(list(roctest.Packet{Opcode: wire.RCFetchAdd, Atomic: wire.AtomicETH{VA: 4}}),
				nil)
		},
		func(r *rig) {
			r.both(list(roctest.Packet{Opcode: wire.RCFetchAdd, Atomic: wire.AtomicETH{VA: 8}}),
				nil)
		},
	},
	AckReqOfAnswer: {
		func(r *rig) { r.both(nil, list(roctest.Packet{Opcode: wire.RCAck, AckReq: true})) },
		func(r *rig) {
			r.both(list(roctest.Packet{Opcode: wire.RCSendOnly, AckReq: true}),
				list(ack(0, 0, 1)))
		},
	},
	SolicitedInside: {
		func(r *rig) {
			p := send(wire.RCSendFirst, 1, 256)
			p.SE = true
			r.both(list(p), nil)
		},
		func(r *rig) {
			last := send(wire.RCSendLast, 2, 8)
			last.SE = true
			r.both(list(send(wire.RCSendFirst, 1, 256), last), nil)
		},
	},
	ReservedSyndrome: {
		func(r *rig) { r.both(nil, list(ack(0, 0x40, 0))) },
		func(r *rig) { r.both(nil, list(ack(0, 0x1f, 0), ack(1, 0x2e, 0))) },
	},
	ZeroPKey: {
		func(r *rig) {
			r.both(list(roctest.Packet{Opcode: wire.RCSendOnly, PKey: 0x8000}), nil)
		},
		func(r *rig) {
			r.both(list(roctest.Packet{Opcode: wire.RCSendOnly, PKey: 0x0001}), nil)
		},
	},
	ZeroCNP: {
		func(r *rig) {
			r.both(list(roctest.Packet{
				Opcode: wire.CNP, Payload: []byte("0123456789abcdef"),
			}), nil)
		},
		func(r *rig) {
			r.both(list(roctest.Packet{Opcode: wire.CNP, Payload: make([]byte, 16)}), nil)
		},
	},
	FragmentedRoCE: {
		func(r *rig) { r.fragments(wire.UDPPort) },
		func(r *rig) { r.fragments(4790) },
	},
}

// TestRules: each rule that packets break is named, with the packet and the place where the rule
// is, and packets that keep it are not accused of anything.
func TestRules(t *testing.T) {
	for c := range Clause(numClauses) {
		tt := ruleTests[c]
		if tt.broken == nil || tt.kept == nil {
			t.Errorf("%q has no test", c)
			continue
		}
		r := newRig(t)
		tt.broken(r)
		got := r.a.Report().Violations
		if len(got) != 1 || got[0].Rule != c.String() || got[0].Clause != c.Where() ||
			got[0].Packets[got[0].Count-1] != r.number {
			t.Errorf("%q is broken: %+v of %d packets", c, got, r.number)
		}
		r = newRig(t)
		tt.kept(r)
		if got := r.a.Report().Violations; len(got) != 0 {
			t.Errorf("%q is kept: %+v", c, got)
		}
	}
}

// TestFragmentsJudged: of a packet in fragments the ICRC and the BTH are looked at as of any other.
func TestFragmentsJudged(t *testing.T) {
	r := newRig(t)
	r.fragments(wire.UDPPort)
	report := r.a.Report()
	if report.RoCE != 1 || report.BadICRC.Count != 0 || report.Refused.Count != 0 ||
		len(report.Connections) != 1 || report.Connections[0].Directions[0].Payload != 64 {
		t.Errorf("%+v", report)
	}
}

// TestClauses: where a rule is, as far as that was found in public: annex A17, and what Soft-RoCE
// of Linux says in rxe_resp.c.
func TestClauses(t *testing.T) {
	for c, want := range map[Clause]string{
		FullPayload:    "IBA 9.7.4.1.6, C9-92",
		DMALength:      "IBA 9.7.4.1.6, C9-94",
		MSNForward:     "IBA 9.7.7.1, C9-148",
		ZeroCNP:        "IBA A17.9.3",
		FragmentedRoCE: "IBA A17.3.1, CA17-8, CA17-16",
	} {
		if got := c.Where(); got != want {
			t.Errorf("%q is in %s, not %s", c, want, got)
		}
	}
}
