// Package msg is messages over a reliable connection, without any I/O: eager, rendezvous, and
// receive buffers that are provisioned while connected.
//
// # Wire
//
// Hello says in the private data of REQ and REP what each end wants. Data travels in frames:
// each is written by RDMA WRITE WITH IMMEDIATE into a slot of a ring that the receiver announced,
// and holds records. An Immediate names the slot. All else is said by control messages, which are
// SENDs of 48 bytes and a little more with several rails. All numbers are big-endian, as those of
// IBA headers are. What is reserved is sent as zero; whether it is looked at is said at each.
//
//	hello.go        Hello, and what two of them agree on
//	immediate.go    Immediate
//	frame.go        FrameHeader, Frame
//	record.go       the records in a frame: RecordHeader, Record, Records
//	framewriter.go  FrameWriter builds a frame in place
//	control.go      Control, its layout
//	controltype.go  which message has which fields: the one table
//	status.go       Status: what came of something
//
// A frame lies in memory that the peer may write to at any time, so each of its fields is read
// once and checked as read: a peer that changes it meanwhile spoils its own frame and no other.
//
// # Streams
//
// A connection of ServiceStream carries bytes: records of type EAGER without tag and flags, in
// frames as above, and FIN when a direction is done. There are no rendezvous. Conn.Reserve and
// Conn.Commit, Conn.Peek and Conn.Consume lend slots to who writes and reads: see stream.go.
//
// Parsing and putting allocate nothing. What a peer sent wrong is one of the errors of this
// package; which is enough for a counter. Values belong to one caller at a time.
//
// # Machine
//
// An Endpoint has connections to many peers. It knows no queue pair and registers no memory: its
// owner hands it what happens and does what it wants, under one lock.
//
//	application  Conn.Send, Endpoint.CancelSend, Receive, Cancel, Probe, Claim, ReceiveClaimed,
//	             Handle, Resume, Flush, StartRMA; results by NextSent, NextReceived, NextRMA
//	             and NextClosed
//	wire         NextWork gives work requests, HandleWork and HandleArrival take completions
//	rails        Conn.AddRail, Rail.Start, Rail.Lose, Rail.Gone; NextLost
//	memory       NextRequest asks for it, Answer has it, whenever that is
//	time         NextDeadline, HandleDeadline
//
//	endpoint.go, conn.go   what there is          close.go    how it ends
//	select.go, protocol.go which way, and why     learn.go    what each way has cost
//	outbound.go, work.go   what leaves            outring.go  slots of the peer
//	inbound.go, heard.go   what comes             inring.go   slots for the peer
//	rings.go               slots that are announced
//	provision.go, grant.go slots that are asked for: the sender's part, the receiver's
//	local.go               a larger buffer of the sender alone
//	rendezvous.go, incoming.go, get.go, put.go, fragments.go, cancel.go
//	stall.go               who does not send what it announced
//	active.go, probe.go    messages without a receive
//	slot.go                messages that stay in their slots until somebody wants them
//	rma.go                 memory of the peer, without a message
//	rail.go, resume.go     several queue pairs, of which any may be lost
//	stripe.go, name.go     long messages by all of them, a key for each
//	flush.go               what says that all before it is at the peer
//	counter.go             what is counted
package msg
