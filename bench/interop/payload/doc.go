// Package payload compares the data of a test between xroce and a program of perftest,
// byte by byte, with nothing of xroce but the memory that it dumped.
//
// A Payload hears the packets of a case on the cable, in both directions. From what it
// heard it puts messages together, plays them on the memory as it was before the first
// one, and compares what comes of that with the memory as it was after the last:
//
//	frame.go    which frames are RoCE, without asking the decoder that is tested
//	heard.go    what one packet said about data, however often it was sent
//	message.go  messages, of the packets of a queue pair
//	model.go    the memory that the messages must have left behind
//	payload.go  all of it, for one case
//
// It does no I/O. The run against Soft-RoCE uses it, and so do the tests of
// cmd/xroce, which have two of our own ends talk on a simulated network.
package payload
