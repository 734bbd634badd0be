// Package oob exchanges connection parameters out of band, over TCP, in the
// text form that ibv_rc_pingpong uses, so that either end may be that program.
// Programs that use rdma_cm are connected to by engine/cm.
//
// The client sends one message, the server answers in kind, the client sends
// "done" when it is ready to receive. A message is 52 characters,
// LID:QPN:PSN:GID as %04x:%06x:%06x: and 32 hexadecimal digits, and a NUL
// (rdma-core libibverbs/examples/rc_pingpong.c).
//
// The package uses the connection that it is given, and knows nothing of queue pairs. A
// connection is used by one goroutine at a time; a deadline is that of the connection.
package oob
