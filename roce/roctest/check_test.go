package roctest_test

import (
	"errors"
	"strings"
	"testing"

	"xroce/roce/roctest"
	"xroce/roce/wire"
)

func template(t *testing.T) *wire.Template {
	t.Helper()
	var tmpl wire.Template
	err := tmpl.Init(wire.Path{
		Framing: wire.FramingV2IPv4, Src: wire.GIDFromIPv4([4]byte{10, 0, 0, 1}),
		Dst: wire.GIDFromIPv4([4]byte{10, 0, 0, 2}), HopLimit: 64, SrcPort: 0xc001,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &tmpl
}

// TestChecks holds every check against a packet that has the property and one
// that has not.
func TestChecks(t *testing.T) {
	tmpl := template(t)
	good := roctest.Packet{
		Opcode: wire.RCWriteOnlyImm, PSN: 7, DestQP: 9, AckReq: true, SE: true, Imm: 5,
		RETH: wire.RETH{VA: 1, RKey: 2, DMALen: 3}, Payload: []byte("abc"),
	}
	atomic := roctest.Packet{Opcode: wire.RCCmpSwap, Atomic: wire.AtomicETH{VA: 8, Compare: 3}}
	old := roctest.Packet{Opcode: wire.RCAtomicAck, OrigData: 6}
	flush := roctest.Packet{Opcode: wire.RCFlush, FETH: wire.FETH{PLT: 1}}
	gram := roctest.Packet{Opcode: wire.UDSendOnly, DETH: wire.DETH{QKey: 1, SrcQP: 2}}
	xrc := roctest.Packet{Opcode: wire.XRCSendOnly, SRQN: 7}
	inv := roctest.Packet{Opcode: wire.RCSendOnlyInv, IETH: 8}
	ack := roctest.Packet{Opcode: wire.RCAck, PSN: 8, AETH: wire.AETH{Syndrome: 0x60, MSN: 4}}
	for _, tt := range []struct {
		name         string
		packet       roctest.Packet
		right, wrong roctest.Check
	}{
		{"opcode", good, roctest.Opcode(wire.RCWriteOnlyImm), roctest.Opcode(wire.RCWriteOnly)},
		{"PSN", good, roctest.PSN(7), roctest.PSN(8)},
		{"DestQP", good, roctest.DestQP(9), roctest.DestQP(8)},
		{"AckReq", good, roctest.AckReq(true), roctest.AckReq(false)},
		{"SE", good, roctest.Solicited(true), roctest.Solicited(false)},
		{"RETH", good, roctest.RETH(good.RETH), roctest.RETH(wire.RETH{})},
		{"immediate", good, roctest.Imm(5), roctest.Imm(6)},
		{"payload length", good, roctest.PayloadLen(3), roctest.PayloadLen(4)},
		{"payload", good, roctest.Payload([]byte("abc")), roctest.Payload([]byte("abd"))},
		{"AtomicETH", atomic, roctest.Atomic(atomic.Atomic), roctest.Atomic(wire.AtomicETH{})},
		{"old value", old, roctest.OrigData(6), roctest.OrigData(7)},
		{"FETH", flush, roctest.FETH(flush.FETH), roctest.FETH(wire.FETH{})},
		{"DETH", gram, roctest.DETH(gram.DETH), roctest.DETH(wire.DETH{})},
		{"SRQ number", xrc, roctest.SRQN(7), roctest.SRQN(8)},
		{"key", inv, roctest.IETH(8), roctest.IETH(9)},
		{"syndrome", ack, roctest.Syndrome(0x60), roctest.Syndrome(0x61)},
		{"MSN", ack, roctest.MSN(4), roctest.MSN(5)},
		{"PSN", ack, roctest.Ack(8, 0x60, 4), roctest.Ack(9, 0x60, 4)},
	} {
		frame := tt.packet.Frame(tmpl)
		if err := roctest.Frame(frame, tt.right); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		err := roctest.Frame(frame, tt.right, tt.wrong)
		if err == nil || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s: error %v does not name it", tt.name, err)
		}
	}
}

func TestFrameRefuses(t *testing.T) {
	tmpl := template(t)
	p := roctest.Packet{Opcode: wire.RCSendOnly, Payload: []byte("x")}
	base := tmpl.Len() + wire.BTHLen
	damage := func(at int, bits byte) []byte {
		frame := p.Frame(tmpl)
		frame[at] ^= bits
		tmpl.Seal(frame, len(frame)-tmpl.Len()-wire.ICRCLen, 0)
		return frame
	}
	bad := p
	bad.BadICRC = true
	for name, frame := range map[string][]byte{
		"ICRC":          bad.Frame(tmpl),
		"short":         p.Frame(tmpl)[:20],
		"trailing":      append(p.Frame(tmpl), 0, 0),
		"padding":       damage(base+1, 1),
		"MigReq":        damage(tmpl.Len()+1, 0x40),
		"reserved":      damage(tmpl.Len()+4, 1),
		"reserved acks": damage(tmpl.Len()+8, 1),
	} {
		if err := roctest.Frame(frame); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPcapRefuses(t *testing.T) {
	head := append([]byte{0xd4, 0xc3, 0xb2, 0xa1}, make([]byte, 20)...)
	head[20] = 1
	record := append(make([]byte, 8), 4, 0, 0, 0, 4, 0, 0, 0, 'd', 'a', 't', 'a')
	whole := append(append([]byte{}, head...), record...)
	if frames, err := roctest.Pcap(whole); err != nil || len(frames) != 1 ||
		string(frames[0]) != "data" {
		t.Errorf("read %q, %v", frames, err)
	}
	for n := range whole {
		_, err := roctest.Pcap(whole[:n])
		if want := n != len(head); errors.Is(err, roctest.ErrPcap) != want {
			t.Errorf("%d bytes: error %v", n, err)
		}
	}
}
