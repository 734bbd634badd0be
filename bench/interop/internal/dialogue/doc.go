// Package dialogue compares what a host says on the wire with what another one says in
// its place, packet by packet and field by field: xroce with Soft-RoCE.
//
// A Dialogue takes the packets of a case in the order in which they are sent, parts them
// into streams whose order does not depend on time, and leaves out repetitions. Values
// that differ in each run, numbers of queue pairs for example, are compared by which
// message told them. What then differs is a Difference, and those that are known have an
// Explanation.
//
//	stream.go     which packets belong together
//	book.go       what the messages of the connection manager told
//	fields.go     the fields of a packet, and the rules about those that differ anyway
//	headers.go    those of the headers
//	message.go    those of a message of the connection manager
//	dialogue.go   all packets of a case
//	compare.go    two dialogues
//	explained.go  differences that are known
//
// It does no I/O. A Dialogue may be used by several goroutines, because the cable that
// the packets pass has one of its own.
package dialogue
