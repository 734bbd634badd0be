// Package dissect names what packets say in the protocol of messages, for whoever looks at a
// capture: hellos in the private data of the connection manager, control messages with their
// fields, frames with their records, and the READs and WRITEs of rendezvous.
//
// A Decoder is given the packets of a capture in their order, decoded by package wire. What is a
// control message and what it has is known to package msg, whose one table it asks.
//
// The private data of REQ and REP tells which queue pairs speak messages. Where the capture begins
// later, a SEND that is a control message to the last bit is named too, and a WRITE WITH IMMEDIATE
// that is a frame; Message.Perhaps says that this is a guess.
//
// Nothing that a packet says is believed, its lengths least of all. What a Decoder keeps is
// bounded: of the connections and keys that it has seen it forgets the oldest, of a message that
// is longer than a frame between ours it keeps the beginning. It does no I/O and belongs to one
// caller at a time.
package dissect
