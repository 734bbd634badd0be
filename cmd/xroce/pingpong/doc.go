// Package pingpong is the protocol of ibv_rc_pingpong of rdma-core
// (libibverbs/examples/rc_pingpong.c): either end may be that program.
//
// The server learns the client's endpoint over TCP, connects its QP, posts its
// receives and answers; the client connects and says "done". Then the client
// sends first, and each end sends again when its send is complete and a message
// has come. A receive is posted anew when all but one are used up.
package pingpong
