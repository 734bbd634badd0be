// Package encap carries Ethernet and IP datagrams in the headers of InfiniBand: raw packets of
// the link layer, Ethernet over InfiniBand, IP over InfiniBand, and a virtual switch in the
// manner of Omni-Path. It turns datagrams into bytes and bytes into datagrams, and puts the
// segments of a datagram together; who has the wire, and which peer is where, is others'
// business.
//
// What a format is, what it carries and how much is said in one table, [Formats], that builder,
// parser, decoder and docs/encap.md read.
//
// A sender keeps one [Template] a peer. [Template.Put] copies a datagram into a packet with its
// headers, which is the only copy; [Template.Seal] makes the packet around a datagram that lies
// in its place already; [Template.Cut] makes as many packets as a datagram takes, or only what is
// around its pieces, for who gathers them. A receiver
// reuses one [Packet]: [Packet.DecodeNative] reads a native packet, [Packet.Decode] a payload
// of a queue pair, both without a copy: what they point to is the caller's frame. Segments go
// through a [Reassembler].
//
// Each refuses by a [Reason], which is the name of a counter and an error. What a peer does
// wrong is never more than that: nothing here panics on any received byte. Put, Seal and Next
// panic, as slices do, when the buffer is shorter than the Room of the template: that is the
// caller's bug.
//
// A datagram that is an encapsulated packet itself may be encapsulated once more, and one that
// has been twice is refused; so is what the tunnel itself has sent ([Template.Own]).
//
// Nothing here does I/O, reads a clock or starts a goroutine, and nothing on the way of a
// packet allocates. A Packet, a Cut and a Reassembler belong to one caller at a time; a
// Template may be used by any goroutine while nobody changes it.
package encap
