// Package inner looks into the datagrams that a tunnel carries: where their headers lie, the
// segment size of TCP, marks of congestion, and what Linux says of them beside (the header of
// virtio-net). It cuts what the kernel left to others to cut, and writes the errors that tell
// an application that its packets are too long.
//
// A datagram is what package encap takes: an Ethernet frame, or an IP packet. What cannot be
// understood is left as it is; no length in a datagram is believed before it was compared with
// what there is. Nothing here allocates, does I/O or keeps anything between calls.
package inner
