package wire

import "testing"

func TestMTU(t *testing.T) {
	for i, n := range []int{0, 256, 512, 1024, 2048, 4096, 0} {
		m := MTU(i)
		if m.Bytes() != n {
			t.Errorf("MTU code %d is %d bytes, want %d", i, m.Bytes(), n)
		}
		if got, ok := MTUFromBytes(n); ok != (n != 0) || ok && got != m {
			t.Errorf("MTUFromBytes(%d) = %d, %t", n, got, ok)
		}
	}
	if MTU1024.String() != "1024" || MTU(9).String() != "MTU(9)" {
		t.Errorf("got %s and %s", MTU1024, MTU(9))
	}
	for _, n := range []int{-1, 255, 257, 1500, 8192} {
		if m, ok := MTUFromBytes(n); ok {
			t.Errorf("MTUFromBytes(%d) = %s", n, m)
		}
	}
}

func TestActiveMTU(t *testing.T) {
	tests := []struct {
		netdev int
		want   MTU
	}{
		{-1, 0},
		{0, 0},
		{335, 0},
		{336, MTU256},
		{591, MTU256},
		{592, MTU512},
		{1103, MTU512},
		{1104, MTU1024},
		{1500, MTU1024},
		{2127, MTU1024},
		{2128, MTU2048},
		{4175, MTU2048},
		{4176, MTU4096},
		{4200, MTU4096},
		{9000, MTU4096},
		{65535, MTU4096},
	}
	for _, tt := range tests {
		if m := ActiveMTU(tt.netdev); m != tt.want {
			t.Errorf("ActiveMTU(%d) = %s, want %s", tt.netdev, m, tt.want)
		}
	}
}

// TestMTUOverhead measures the longest packets of connected queue pairs against
// the overhead: only an IPv6 WRITE only with immediate is longer, by 4 bytes.
func TestMTUOverhead(t *testing.T) {
	for op, spec := range Opcodes() {
		if spec.Service > ServiceUC || !spec.Payload.Allows(4096, 4096) {
			continue
		}
		over := ipv6Len + udpLen + spec.TransportLen(4096) - 4096 - MTUOverhead
		writeImm := op == RCWriteOnlyImm || op == UCWriteOnlyImm
		if over > 0 != writeImm || over > 4 {
			t.Errorf("%s exceeds the overhead by %d bytes", op, over)
		}
	}
}
