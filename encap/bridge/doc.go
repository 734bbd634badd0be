// Package bridge decides where the frames of a tunnel go: a learning bridge between one segment
// inside and peers that carry its frames (IEEE 802.1D 7.7-7.9, and the split horizon of
// RFC 4762 4.4), and, of IP packets, a table of prefixes.
//
// What came from a peer goes inside and never to another peer: each peer that wants a frame
// has it from the one that first had it, so nothing goes round in a circle. Addresses are
// learned from the source of frames, each in the share of the table that its port has, so that
// a flood of new addresses drives out none but those of the port that it came by.
//
// Nothing here does I/O or reads a clock. A Table and Routes belong to one caller at a time.
package bridge
