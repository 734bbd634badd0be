// Package pingpong is the protocol of the pingpong examples of rdma-core, one for
// each kind of queue pair (libibverbs/examples/{rc,uc,ud,srq}_pingpong.c): either
// end may be that program.
//
// The server learns the client's endpoint over TCP, connects its QP, posts its
// receives and answers; the client connects and says "done". Then the client
// sends first, and each end sends again when its send is complete and a message
// has come. A receive is posted anew when all but one are used up.
//
// With a shared receive queue there are several QPs that do so side by side. Their
// endpoints are exchanged before the first message, always 256 of them.
//
// The originals wait for ever for what does not come; a run ends with an error.
//
// A run uses the device and the TCP connection that it is given, on the goroutine that
// called it, and prints nothing: results are values.
package pingpong
