package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestSourcePort compares with the ports in the captures whose two QP numbers
// are known.
func TestSourcePort(t *testing.T) {
	checked := 0
	names, _ := filepath.Glob("testdata/captures/rc_*.json")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Facts struct {
				A json.RawMessage `json:"qpn_a"`
				B json.RawMessage `json:"qpn_b"`
			} `json:"facts"`
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a, okA := number(doc.Facts.A)
		b, okB := number(doc.Facts.B)
		if !okA || !okB {
			continue // several queue pairs
		}
		for i, frame := range readCapture(t, name[:len(name)-len("json")]+"pcap") {
			var p Packet
			p.Decode(frame, nil)
			if p.BTH.DestQP != a && p.BTH.DestQP != b {
				continue // another connection
			}
			checked++
			if got := SourcePort(0, a, b); got != p.SrcPort {
				t.Errorf("%s frame %d: port %d, captured %d", name, i+1, got, p.SrcPort)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d packets had known QP numbers", checked)
	}
}

// number reads a number that JSON has as a number or as a hexadecimal string.
func number(raw json.RawMessage) (uint32, bool) {
	s := string(raw)
	if u, err := strconv.Unquote(s); err == nil {
		s = u
	}
	n, err := strconv.ParseUint(s, 0, 32)
	return uint32(n), err == nil
}

func TestSourcePortRule(t *testing.T) {
	tests := []struct {
		fl, a, b uint32
		want     uint16
	}{
		{0, 0, 0, 0xC000},
		{1, 7, 9, 0xC001},                     // the flow label goes first
		{1 << 14, 0, 0, 0xC001},               // its top bits are folded
		{0xFFFFF, 0, 0, 0xC000 | 0x3FFF ^ 63}, // all of them
		{0, 2, 3, 0xC006},
		{0, 1 << 23, 1 << 23, 0xC040},
		{0, 1 << 20, 1, 0xC001}, // the product's upper bits are folded
	}
	for _, tt := range tests {
		if got := SourcePort(tt.fl, tt.a, tt.b); got != tt.want {
			t.Errorf("SourcePort(0x%x, 0x%x, 0x%x) = 0x%x, want 0x%x", tt.fl, tt.a, tt.b, got,
				tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		fl := rapid.Uint32().Draw(t, "flow label")
		a, b := rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b")
		port := SourcePort(fl, a, b)
		if port < 0xC000 || port != SourcePort(fl, b, a) {
			t.Fatalf("0x%x and back 0x%x", port, SourcePort(fl, b, a))
		}
	})
}
