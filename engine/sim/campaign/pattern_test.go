package campaign

import "testing"

// TestPattern fills and knows its own bytes again, of any length, and no others.
func TestPattern(t *testing.T) {
	for n := range 40 {
		b := make([]byte, n)
		Pattern(0x0102030405060708).Fill(b)
		if !Pattern(0x0102030405060708).Fills(b) {
			t.Errorf("%d bytes are not its own", n)
		}
		for i := range b {
			b[i]++
			if Pattern(0x0102030405060708).Fills(b) {
				t.Errorf("byte %d of %d is another, and it does not see", i, n)
			}
			b[i]--
		}
	}
}

// TestMAC finds the node and the adapter of an address.
func TestMAC(t *testing.T) {
	for node := range 8 {
		for adapter := range 3 {
			mac := MAC(node, adapter)
			if NodeOf(mac) != node || AdapterOf(mac) != adapter {
				t.Errorf("adapter %d of node %d is %d of %d", adapter, node, AdapterOf(mac),
					NodeOf(mac))
			}
		}
	}
}
