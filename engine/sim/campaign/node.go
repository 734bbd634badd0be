package campaign

// MAC is the hardware address of an adapter of a node, both counted from 0.
func MAC(node, adapter int) [6]byte { return [6]byte{2, 0, 0, 0, byte(adapter), byte(node + 1)} }

// NodeOf is the node that has a MAC address. For another address, as damaged frames have, it is
// any number.
func NodeOf(mac [6]byte) int { return int(mac[5]) - 1 }

// AdapterOf is the adapter that has a MAC address, as NodeOf is the node.
func AdapterOf(mac [6]byte) int { return int(mac[4]) }
