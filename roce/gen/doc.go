// Package gen makes frames for testing networks, decides when each of them is due, and
// tells from those that arrive what was lost on the way.
//
// A Flow writes frames: raw Ethernet, UDP, or RoCE with opcode sequences whose PSNs and
// ICRCs are right. Each has a Signature in its payload, with the number of its flow,
// its place in that and the time when it was made. Sizes and Fields say what differs from
// frame to frame; the same Config makes the same frames. Faults are mistakes on purpose.
//
// A Schedule says how many frames are due at a time: a rate in packets, or in bits of layer 2
// or layer 1, that stands, ramps or comes in bursts.
//
// A Reader finds the signature in a frame that came, and a Track counts for a flow what is
// lost, duplicate and out of order, as RFC 4737 and RFC 5560 have these words.
//
// Nothing here does I/O, reads a clock or starts a goroutine. Next, Read and Add allocate
// nothing. All types belong to one caller at a time.
package gen
