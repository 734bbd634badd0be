// Package wire is the packet format of RoCE: headers, opcodes, checksums and
// the arithmetic of PSNs and GIDs. It turns bytes into values and values into
// bytes; it keeps no state and does no I/O.
//
// A receiver reuses one [Packet]: [Packet.Decode] checks every length once and
// returns a [Reason], [Packet.VerifyICRC] checks the invariant CRC. A
// sender keeps one [Template] per queue pair, writes the base transport header
// (BTH), the extended headers and the payload behind it, and calls
// [Template.Seal]. A packet whose turn has not come is kept with [Packet.CopyTo]; a
// datagram is delivered behind what [Packet.PutGRH] writes.
//
// Every header is one file of the same shape: a type that holds the meaning, a
// Parse function that makes one bounds check, and a Put method that wants room
// for the whole header. Reserved bits are sent as zero, ignored on receive, and
// left alone by the in-place patches that retransmission uses.
//
// What an opcode is, which headers it carries and how much payload it may have
// is said in one table, read through [Opcode.Spec].
//
// Nothing here allocates on the data path and nothing panics on any received
// byte. Put methods and Seal panic, as slices do, when the caller's buffer is
// too short: that is the caller's bug, not the peer's.
//
// Clauses cited as "IBA" are those of the InfiniBand Architecture
// Specification, volume 1; RoCE v1 is its annex A16, RoCE v2 its annex A17.
//
// The package imports nothing but the standard library. A Packet and a Template belong to
// one caller at a time; what a Packet points to is the caller's frame. The tables do not
// change and may be read by any goroutine.
package wire
