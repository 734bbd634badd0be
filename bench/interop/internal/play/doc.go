// Package play has xroce and a program in the VM talk, as a case says, and judges what
// came of it: whether both ended well, what was on the cable, whether the data are those
// of the memory of xroce, and, for a trace, whether xroce says what Soft-RoCE says in its
// place.
//
//	watch.go      looks at every packet of a case
//	compare.go    the memory of xroce, and the payload that was heard
//	refused.go    the end of a case in which nobody listens
//	listen.go     waits for a server in a VM
//	talk.go       both programs of a case, from start to end
//	loss.go       the same on a cable that loses frames
//	restart.go    the same, and the device is taken away in between
//	reset.go      the same, and the card of xroce is reset in between
//	try.go        a case
//	insist.go     how often it is tried, and when there is nothing to try it on
//	reference.go  a case between two Soft-RoCE hosts
//	trace.go      the cases whose packets are compared with those
//
// A lab is used by one case at a time; the cable has a goroutine of its own, which calls
// a watch.
package play
