// Package cm is the connection manager of InfiniBand on RoCE, with the addresses
// of rdma_cm, without any I/O: it makes and ends connections by messages between
// the QPs number 1 of two hosts.
//
// # Messages
//
// Each message is a MAD of 256 bytes and a struct: ParseREQ, REQ.Put and so on.
// REQ, REP, RTU make a connection, MRA asks for time, REJ refuses, DREQ and
// DREP end it. SIDR_REQ and SIDR_REP look up the QP of a datagram service.
//
// # The machine
//
// A Machine holds all conversations of a host. The wire's face is like that of
// roce.QP:
//
//	HandleMAD(now, from, mad)      a MAD came to QP 1; mad is borrowed for the call
//	NextMAD(buf) (Path, bool)      the next MAD to send
//	NextDeadline() (Time, bool)    when to come back if nothing happens
//	HandleDeadline(now)            that time has come
//
// The owner of the queue pairs calls and is told by events:
//
//	active                            passive
//	                                  Listen
//	Connect          -- REQ ------->  EventConnectRequest: QP to RTS
//	EventConnectResponse <-- REP ---  Accept, or Reject
//	QP to RTS; Establish -- RTU --->  EventEstablished
//	Disconnect       -- DREQ ------>  EventDisconnected: QP to ERR
//	EventDisconnected <-- DREP ------ (by itself)
//	EventTimewaitExit                 EventTimewaitExit: the QP may be destroyed
//
// EventTimewaitExit is the last of every connection, however it ended; its ID and
// the number of its queue pair may be used again from then on, not before.
// Time is passed in, randomness is passed in, and so the same code runs on a
// device, under virtual time in a simulation and against a replayed capture.
// A Machine is not safe for concurrent use.
//
// What a peer does wrong becomes a counter, a REJ or nothing; a MAD for a
// conversation must come from the address that the conversation is with. What
// peers may make a machine hold is bounded, see Config.
//
// Sources: IBA volume 1, chapter 12 and annex A11; where it leaves things open,
// kernel drivers/infiniband/core/cm.c and cma.c.
//
// The package imports clock, counter, verbs, wire and the table of numbers. Of queue
// pairs it knows the numbers, and whoever owns those moves them.
package cm
