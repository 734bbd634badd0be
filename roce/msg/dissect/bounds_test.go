package dissect

import (
	"encoding/binary"
	"strings"
	"testing"

	"xroce/roce/msg"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// check holds a decoder to what it says of itself.
func (d *Decoder) check(t testing.TB) {
	t.Helper()
	held := 0
	for _, f := range d.flows.m {
		held += len(f.request.bytes) + len(f.response.bytes)
		if n := len(f.request.bytes); n > maxFrame {
			t.Errorf("%d bytes of one message", n)
		}
	}
	if held != d.held || held > maxHeld {
		t.Errorf("holds %d bytes, and says %d", held, d.held)
	}
	for name, n := range map[string]int{
		"flows": len(d.flows.m), "their order": len(d.flows.order),
		"keys": len(d.keys.m), "their order ": len(d.keys.order),
	} {
		if n > maxFlows {
			t.Errorf("%d %s", n, name)
		}
	}
	if len(d.flows.m) != len(d.flows.order) || len(d.keys.m) != len(d.keys.order) {
		t.Error("a table and its order differ")
	}
}

// TestBounded: connections, keys and messages without end take no more than there is for them, and
// a connection beside them is read as before.
func TestBounded(t *testing.T) {
	r := newRig(t)
	payload := make([]byte, 4096)
	payload[8] = 1 // the beginning of a frame, of which the rest is to come
	for i := range 2 * maxFlows {
		r.give(0, roctest.Packet{
			Opcode: wire.RCWriteFirst, DestQP: uint32(i + 2), Payload: payload,
		})
		c := msg.Control{Type: msg.TypeRTR, ID: 1, Len: 1, RKey: uint32(i)}
		r.give(0, roctest.Packet{
			Opcode: wire.RCSendOnly, DestQP: 2, Payload: c.Put(make([]byte, c.Size())),
		})
	}
	if len(r.d.flows.m) != maxFlows || len(r.d.keys.m) != maxKeys || r.d.held < maxHeld/2 {
		t.Errorf("%d flows, %d keys, %d bytes", len(r.d.flows.m), len(r.d.keys.m), r.d.held)
	}
	r.d.check(t)
	r.connect()
	want(t, r.say(0, msg.Control{Type: msg.TypeFIN}), "FIN seq=0 released=0")
	for i := range 2 * maxFrame / len(payload) {
		op := wire.RCWriteMiddle
		if i == 0 {
			op = wire.RCWriteFirst
		}
		r.next(0, roctest.Packet{Opcode: op, Payload: payload})
	}
	r.d.check(t)
	got := r.next(0, roctest.Packet{Opcode: wire.RCWriteLastImm, Payload: payload})
	if r.m.Err != ErrCut || !strings.HasSuffix(got, ErrCut.Error()) { //nolint:errorlint // as it is
		t.Error(got)
	}
	r.d.check(t)
}

// FuzzDecoder: whatever packets there are, nothing panics, and what is kept stays bounded.
func FuzzDecoder(f *testing.F) {
	c := msg.Control{Type: msg.TypeAdvert, Number: 1, Len: 64}
	add := func(op wire.Opcode, payload []byte) []byte {
		return append([]byte{byte(op), 0, 0, byte(len(payload))}, payload...)
	}
	f.Add(add(wire.RCSendOnly, c.Put(make([]byte, c.Size()))))
	f.Add(append(add(wire.RCWriteFirst, frameOf(f, 100)[:64]), add(wire.RCWriteLastImm, nil)...))
	f.Add(add(wire.UDSendOnly, rep()))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRig(t)
		for len(b) >= 4 {
			op, host, psn, n := wire.Opcode(b[0]), int(b[1]&1), b[2], int(b[3])
			p := roctest.Packet{Opcode: op, DestQP: uint32(b[1] >> 4), PSN: wire.PSN(psn)}
			b = b[4:]
			p.Payload, b = b[:min(n, len(b))], b[min(n, len(b)):]
			if len(p.Payload) >= 8 {
				p.Imm = binary.BigEndian.Uint32(p.Payload)
				p.RETH.RKey, p.RETH.DMALen = uint32(p.Payload[4]), uint32(p.Payload[5])<<24
			}
			if op == wire.UDSendOnly {
				p.DestQP = 1
				p.Payload = append(p.Payload[:len(p.Payload):len(p.Payload)],
					make([]byte, 256-min(len(p.Payload), 256))...)
			}
			var decoded wire.Packet
			if decoded.Decode(p.Frame(&r.paths[host]), nil) != wire.OK {
				continue
			}
			if r.d.Decode(&decoded, &r.m) && r.m.String() == "" {
				t.Errorf("%+v says nothing", r.m)
			}
			r.d.check(t)
		}
	})
}

// TestForeign: of messages that begin as none of ours does nothing is kept.
func TestForeign(t *testing.T) {
	r := newRig(t)
	payload := make([]byte, 4096)
	for i, op := range []wire.Opcode{wire.RCSendFirst, wire.RCWriteFirst} {
		r.give(0, roctest.Packet{Opcode: op, DestQP: uint32(i + 2), Payload: payload})
	}
	if r.d.held != 0 {
		t.Errorf("%d bytes", r.d.held)
	}
}
