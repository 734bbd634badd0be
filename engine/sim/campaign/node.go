package campaign

// MAC is the hardware address of a node, counted from 0.
func MAC(node int) [6]byte { return [6]byte{2, 0, 0, 0, 0, byte(node + 1)} }

// NodeOf is the node that has a MAC address. For another address, as damaged frames have, it is
// any number.
func NodeOf(mac [6]byte) int { return int(mac[5]) - 1 }
