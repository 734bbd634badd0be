// Package conversation is a small language for conversations with a queue pair,
// and plays them. A file plays the application, the peer and the clock of one
// queue pair, and says exactly what the queue pair does in between:
//
//	# NAK 0x60 for the second packet: everything from it on is sent again.
//	covers: retry nak_seq
//
//	qp rc pmtu=256 sq_psn=100
//	region a 4096 local_write
//
//	post send wr=1 sge=a:0:300 signaled
//	> send_first psn=100 data=a:0:256
//	> send_last  psn=101 data=a:256:44 ackreq
//	< ack psn=101 syndrome=psn_sequence_error
//	> send_last  psn=101 data=a:256:44 ackreq
//	+1ms
//	< ack psn=101
//	cqe wr=1 success send
//
// # Exactness
//
// What is not announced must not happen. A packet that the queue pair sends must
// be the one that the next > line describes, in every field; before time passes
// and at the end nothing may be left to send, and at the end no completion, no
// event, no drop counter, no change of state and no changed byte of memory that
// the file did not tell. An error has the place, the line, and what came instead
// in the same language.
//
// Packets that the queue pair wants to send wait until the file takes them with
// >, as they do when the link is busy: two < lines in a row are packets that come
// in one burst.
//
// # Header lines
//
//	# TEXT          what the file shows, and the clause; first of all
//	covers: ROWS    rows of Tables, with ; between them; once more in a case
//	todo: REASON    the file is known to fail, in every run
//
// # Runs
//
//	case NAME       the lines up to the next case are another run, after the
//	                lines before the first case
//	each NAME... {  a table: the file is run once for each line of values up to
//	                }, with $NAME for the value; one that stands alone may be
//	                several words
//	for NAME in FIRST..LAST {
//	                the lines up to } once for each number, none if LAST is less
//
// # Making things
//
//	srq [srqn=N] [wr=N] [sge=N] [other_domain]
//	qp TYPE [ATTRIBUTE=VALUE...] [state=STATE] [qpn=N] [window=N] [send_wr=N]
//	        [recv_wr=N] [sge=N] [cq=N] [max_inline=N] [signal_all] [srq]
//	region NAME LENGTH RIGHTS [addr=N] [other_domain]
//	deregister NAME
//	rereg NAME [length=N] [addr=N] [domain=own|other] [rights=RIGHTS] [error="TEXT"]
//	                other memory of N bytes, another domain, other rights
//	window NAME 1|2 [other_domain]
//	bind mw=KEY [new=KEY] mr=KEY at=ADDRESS len=N rights=RIGHTS
//	                another queue pair of the domain binds the window
//	dealloc NAME
//
// The types are rc, uc, ud, gsi, xrc_send and xrc_recv; the latter needs an srq
// before it. With the word srq a QP takes its receives from there.
//
// A QP is in RTS unless state= says else, and has pmtu=256 sq_psn=100 rq_psn=500
// timeout=14 retry_cnt=3 rnr_retry=3 min_rnr_timer=12 max_rd_atomic=4
// max_dest_rd_atomic=4 access=remote_write|remote_read dest_qpn=0x22. A region is
// full of a pattern of its own, LKey and RKey are the same.
//
// # The application
//
//	post OPERATION wr=ID [sge=LIST | inline=DATA] [remote=ADDRESS rkey=KEY]
//	     [imm=N] [inv=KEY] [compare_add=N] [swap=N] [plt=N] [flush_len=N]
//	     [flush_region] [dest_qpn=N] [qkey=N] [srqn=N]
//	     [mw=KEY [new=KEY] mr=KEY at=ADDRESS len=N rights=RIGHTS]
//	     [signaled] [solicited] [fence] [error="TEXT"]
//	post recv [srq] wr=ID [sge=LIST] [error="TEXT"]
//	cqe wr=ID STATUS [OPERATION] [len=N] [imm=N] [inv=KEY] [grh] [src_qpn=N]
//	     [vendor=N]
//	                the next completion of the queue that wr was posted to
//	cqe none        nothing to poll
//	overrun sq|rq   the CQ of the sends, or of the receives, has lost something
//	arm sq|rq [solicited]
//	notified sq|rq TIMES
//	modify ATTRIBUTE=VALUE... [error="TEXT"]
//	attr ATTRIBUTE=VALUE...
//	state STATE
//	event NAME      the next asynchronous event
//	limit N         arm the limit of the SRQ
//	valid NAME yes|no
//	                whether the key of the region may be used, the window is bound
//	memory REGION:OFFSET:LENGTH = DATA
//	                the bytes are there: what changed is announced with it
//	store REGION:OFFSET:LENGTH = DATA
//	                the application writes them
//
// # The wire
//
//	> PACKET [FIELD=VALUE...] [len=N | data=DATA]
//	> nothing
//	< PACKET [FIELD=VALUE...] [len=N | data=DATA] [MODIFICATION...]
//	< hex DIGITS...  the bytes from the BTH to the ICRC
//
// A packet is called as in the table of opcodes, in lower case, RC without
// prefix. Fields of > that are not given are off (ackreq, se) or the ordinary
// ones; psn and all fields of extended headers have to be given. Of < only psn has
// to be given. The modifications are opcode=N pad=N badicrc src=IP dst=IP
// framing=v1 sport=N tclass=N hoplimit=N, and refused=REASON for a packet that the
// decoder does not let through.
//
// # The clock
//
//	+TIME           time passes; what is due on the way is done when it is due
//	deadline TIME   the next one, counted from now
//	deadline none
//
// # Inside
//
//	counter NAME N  the counter has this value
//	dropped STEP    the check that refused the last packet that was refused
//
// # Values
//
//	numbers    sums of products: 100, 0x10, 100+3*$i, 500-0x800000 (PSNs have 24 bits)
//	times      the same with units: 67.108864ms, 3*10us-1ns
//	DATA       a:0:256 (what a region holds), %7:0:256 (a part of pattern 7; pattern 0
//	           is zero), "text", 0x0102, u64:7 (eight bytes in the host's order)
//	LIST       a:0:256,b:16:4 or ADDRESS:LENGTH:LKEY
//	ADDRESS    a:16 (an offset in a region or a window) or a number
//	KEY        a, a^1 (with a bit turned over), or a number
//	syndromes  ack (sent: whatever its credits), credits:CODE, credits:none,
//	           psn_sequence_error, invalid_request, remote_access_error,
//	           remote_operational_error, rnr:CODE, or a number
//
// The package is for the tests of roce and imports that and what is below. It reads no
// file: who plays a conversation passes its text. A conversation belongs to one goroutine.
package conversation
