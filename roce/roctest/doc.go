// Package roctest is support for tests that talk RoCE packets: a Packet to build
// frames from, Checks to judge frames with, and a reader of capture files.
//
// Checks compose. A test says what matters to it and nothing else:
//
//	err := roctest.Frame(frame, roctest.Opcode(wire.RCAck), roctest.PSN(100),
//		roctest.Syndrome(wire.ACKNoCredits), roctest.MSN(1))
//
// Frame itself checks what holds for every packet that this stack sends: it
// decodes, its ICRC is right, reserved bits and padding are zero, the packet ends
// with the frame. A Check returns an error that says expected and got; it never
// panics on any packet that decodes.
//
// It is not internal to roce, because the tests of bench/interop judge frames of other
// implementations with it.
//
// It imports mem and wire, opens no file, and keeps no state: all of it may be used by
// several tests at once.
package roctest
