package conversation

import (
	"fmt"
	"strconv"
)

// A Table is a list of rules of the transport. Every row is to be covered by a
// conversation, or says why it cannot be.
type Table struct {
	Name   string // as covers: spells it, in front of the row
	Title  string
	Source string
	Rows   []Row
}

// A Row is one rule.
type Row struct {
	Name string // as covers: spells it
	Text string // the rule in short
	Not  string // why no conversation covers it, "" when one has to
}

// Tables are all tables, in the order in which they are printed.
var Tables = []Table{
	{
		"nak", "What ends a send work request", "IBA 9.9.2.4.2, 9.7.5.2", []Row{
			{"0x60", "NAK PSN sequence error, retries used up: RETRY_EXC_ERR", ""},
			{"0x61", "NAK invalid request: REM_INV_REQ_ERR", ""},
			{"0x62", "NAK remote access error: REM_ACCESS_ERR", ""},
			{"0x63", "NAK remote operational error: REM_OP_ERR", ""},
			{"reserved", "reserved NAK codes count as remote operational error", ""},
			{"rnr", "RNR NAK, retries used up: RNR_RETRY_EXC_ERR", ""},
			{"silence", "no answer, retries used up: RETRY_EXC_ERR", ""},
			{"gather", "local gather failed: LOC_PROT_ERR", ""},
			{"malformed", "work request malformed: LOC_QP_OP_ERR", ""},
			{"length", "message longer than allowed: refused at post", ""},
			{"ud_length", "datagram longer than the port's MTU: not sent, SUCCESS", ""},
			{"bind", "memory window bind refused: MW_BIND_ERR", ""},
			{"response", "malformed or unexpected response: BAD_RESP_ERR", ""},
			{"scatter", "READ data cannot be stored: LOC_PROT_ERR", ""},
			{"flush", "work requests after the failed one: WR_FLUSH_ERR", ""},
			{"before", "work requests before the failed one complete first", ""},
		},
	},
	{
		"status", "Completion status", "IBA 11.6.2, enum ibv_wc_status", []Row{
			{"SUCCESS", "", ""},
			{"LOC_LEN_ERR", "", ""},
			{"LOC_QP_OP_ERR", "", ""},
			{"LOC_EEC_OP_ERR", "", "reliable datagram only"},
			{"LOC_PROT_ERR", "", ""},
			{"WR_FLUSH_ERR", "", ""},
			{"MW_BIND_ERR", "", ""},
			{"BAD_RESP_ERR", "", ""},
			{"LOC_ACCESS_ERR", "", ""},
			{"REM_INV_REQ_ERR", "", ""},
			{"REM_ACCESS_ERR", "", ""},
			{"REM_OP_ERR", "", ""},
			{"RETRY_EXC_ERR", "", ""},
			{"RNR_RETRY_EXC_ERR", "", ""},
			{"LOC_RDD_VIOL_ERR", "", "reliable datagram only"},
			{"REM_INV_RD_REQ_ERR", "", "reliable datagram only"},
			{"REM_ABORT_ERR", "", "reliable datagram only"},
			{"INV_EECN_ERR", "", "reliable datagram only"},
			{"INV_EEC_STATE_ERR", "", "reliable datagram only"},
			{"FATAL_ERR", "", "failing hardware; there is none here"},
			{"RESP_TIMEOUT_ERR", "", "connection management, not the transport"},
			{"GENERAL_ERR", "", "failing hardware; there is none here"},
			{"TM_ERR", "", "tag matching hardware"},
			{"TM_RNDV_INCOMPLETE", "", "tag matching hardware"},
		},
	},
	{
		"retry", "What makes the requester send again", "IBA 9.7.5.2, 9.7.6.1", []Row{
			{"timeout", "local ACK timeout: back to the oldest unanswered PSN", ""},
			{"nak_seq", "NAK 0x60: back to its PSN, all before it is answered", ""},
			{"implied_nak", "an answer that skips a READ: back to what is missing", ""},
			{"rnr_nak", "RNR NAK: wait, then from its PSN, all before it is answered", ""},
			{"exhausted", "counter used up: the oldest work request fails", ""},
			{"progress", "an answer to something new: the counters start anew", ""},
			{"same_loss", "a second NAK for one loss costs nothing", ""},
			{"nak_in_rnr", "NAK 0x60 while an RNR timer runs costs nothing", ""},
			{"same_bytes", "a PSN carries the same bytes every time", ""},
		},
	},
	{"timeout", "Local ACK timeout codes", "IBA 9.7.6.1.3", numbers(32, timeoutText)},
	{"retry_cnt", "Retry counts", "IBA 9.7.5.2", numbers(8, func(n int) string {
		return fmt.Sprintf("sent %d times", n+1)
	})},
	{"rnr_retry", "RNR retry counts", "IBA 9.7.5.2.8", numbers(8, func(n int) string {
		if n == 7 {
			return "sent for ever"
		}
		return fmt.Sprintf("sent %d times", n+1)
	})},
	{"rnr_timer", "RNR timer codes", "IBA 9.7.5.2.8", numbers(32, nil)},
	{
		"requester_psn", "Where the PSN of an answer lies", "IBA 9.7.5.1.1", []Row{
			{"outstanding", "from the oldest unanswered to the last sent: processed", ""},
			{"ghost", "before: dropped in silence", ""},
			{"future", "behind: dropped in silence", ""},
			{"wrap", "the PSN space has no end", ""},
		},
	},
	{
		"responder_psn", "Where the PSN of a request lies", "IBA 9.7.4.1.2", []Row{
			{"expected", "executed", ""},
			{"duplicate", "up to 2^23 before: not executed again", ""},
			{"ahead", "up to 2^23-1 behind: NAK 0x60, once for a gap", ""},
			{"wrap", "the PSN space has no end", ""},
		},
	},
	{
		"psns", "How many PSNs a request takes", "IBA 9.7.2", []Row{
			{"send", "SEND and WRITE: one a packet, at least one", ""},
			{"read", "READ: one for each packet of the answer", ""},
			{"atomic", "atomic, FLUSH, ATOMIC WRITE: one", ""},
		},
	},
	{
		"check", "The responder's checks, in their order", "IBA 9.6, 9.7.4.1", []Row{
			{"1_state", "state of the QP: dropped", ""},
			{"1_service", "transport service: dropped", ""},
			{"1_address", "addresses of the connection: dropped", ""},
			{"1_pkey", "P_Key: dropped", ""},
			{"1_icrc", "ICRC: dropped", ""},
			{"2_psn", "PSN", ""},
			{"3_sequence", "opcode sequence: NAK 0x61", ""},
			{"4_rights", "rights of the QP: NAK 0x61", ""},
			{"5_receive", "a receive for what consumes one: RNR NAK", ""},
			{"5_slot", "a resource for a READ or atomic: NAK 0x61", ""},
			{"6_length", "lengths: NAK 0x61", ""},
			{"7_rkey", "R_Key, domain, rights, range: NAK 0x62", ""},
			{"8_alignment", "alignment of atomics: NAK 0x61", ""},
			{"9_too_long", "SEND longer than its receive: NAK 0x61", ""},
			{"9_local", "receive with a bad L_Key: NAK 0x63", ""},
			{"9_invalidate", "a key that cannot be invalidated", ""},
			{"10_order", "completion, then ACK", ""},
			{"overflow", "no room in the CQ: ERR", ""},
			{"after_fatal", "nothing is answered after a fatal NAK", ""},
		},
	},
	{
		"duplicate", "Requests that come again", "IBA 9.7.5.1.4", []Row{
			{"send", "SEND, WRITE: the newest PSN is acknowledged again", ""},
			{"read", "READ: answered again from that PSN on", ""},
			{"read_part", "READ from the middle of an old one", ""},
			{"read_unknown", "READ not remembered, or another: dropped", ""},
			{"atomic", "atomic, ATOMIC WRITE: the result is sent again", ""},
			{"flush", "FLUSH: acknowledged again", ""},
			{"behind", "what is new waits behind a replay", ""},
		},
	},
	{
		"ack", "ACKs", "IBA 9.7.5.1", []Row{
			{"asked", "for a packet with AckReq at once, else not at all", ""},
			{"coalesced", "one ACK for many requests", ""},
			{"all_before", "an ACK answers all SENDs and WRITEs before it", ""},
			{"by_read", "a READ response answers them likewise", ""},
			{"not_reads", "an ACK does not answer a READ", ""},
			{"order", "answers leave in the order of PSNs", ""},
			{"ackreq", "the requester asks when it would wait, and in between", ""},
			{"syndrome", "positive answers carry credits, or 0x1F", ""},
			{"credits", "credits that come are a limit", ""},
		},
	},
	{
		"msn", "The message sequence number", "IBA 9.7.7.1", []Row{
			{"zero", "0 after RESET", ""},
			{"complete", "one more for each complete SEND or WRITE", ""},
			{"read", "one more for a READ, already in its answer", ""},
			{"atomic", "one more for an atomic, FLUSH, ATOMIC WRITE", ""},
			{"duplicate", "none more for duplicates", ""},
			{"nak", "a NAK carries the current one", ""},
		},
	},
	{
		"read", "READ responses", "IBA 9.7.5.1.6", []Row{
			{"order", "first, middle, last; or only", ""},
			{"restart_first", "after a retry they may begin anew with first", ""},
			{"restart_middle", "after a retry they may go on with middle", ""},
			{"lengths", "every one but the last is full, the total is right", ""},
			{"gap", "a missing one is asked for", ""},
			{"nak", "a NAK inside a READ is its own", ""},
			{"resume", "asked again from the first missing packet on", ""},
		},
	},
	{
		"order", "Order and fences", "IBA 9.5, 10.8.3", []Row{
			{"cqe", "completions come in the order of posting", ""},
			{"unsignaled", "an unsignaled work request completes in silence", ""},
			{"write_read", "a READ sees the WRITE before it", ""},
			{"read_send", "a SEND passes a READ under way", ""},
			{"atomic_send", "a SEND passes an atomic under way", ""},
			{"fence", "a fenced work request waits for READs and atomics", ""},
			{"max_rd_atomic", "READs beyond the limit wait, and all behind them", ""},
			{"max_rd_atomic_0", "a READ that can never go fails at post", ""},
			{"local_inv", "LOCAL_INV waits for all before it", ""},
			{"inline", "INLINE data is copied when posted", ""},
			{"solicited", "SE on the last packet of what consumes a receive", ""},
			{"immediate", "a WRITE with immediate consumes a receive at its end", ""},
			{"invalidate", "SEND with invalidate", ""},
			{"zero", "zero length needs no key, but the right of the QP", ""},
		},
	},
	{
		"bind", "What binding a memory window checks", "IBA 10.6.7.2, o10-37", []Row{
			{"window", "the window's present key, and another of the same index", ""},
			{"type_1", "type 1: not zero based; may be bound already", ""},
			{"type_2", "type 2: not bound, and to some bytes", ""},
			{"domain", "the QP is of the window's domain", ""},
			{"region", "the region's key, its domain, and that it is valid", ""},
			{"mw_bind", "the region has MW_BIND and is not zero based", ""},
			{"local_write", "peers may write only where LOCAL_WRITE is", ""},
			{"rights", "none but those of peers", ""},
			{"range", "inside the region", ""},
			{"malformed", "pieces, inline data, another index: refused at post", ""},
			{"order", "waits for all before it, sends nothing", ""},
		},
	},
	{
		"window", "What a memory window grants", "IBA 10.6.7", []Row{
			{"type_1", "to every QP of its domain; a bind ends the key before", ""},
			{"type_2", "to the QP that bound it", ""},
			{"own", "rights and bounds of its own, whatever the region's are", ""},
			{"zero_based", "addresses are offsets from its first byte", ""},
			{"unbind", "type 1: bound to nothing", ""},
			{"local_inv", "type 2 is free again, by LOCAL_INV", ""},
			{"send_inv", "and by SEND with invalidate from the peer of its QP", ""},
			{"not_its", "who may not free it", ""},
			{"dealloc", "its key is gone", ""},
			{"under_way", "taken away in the middle of a message", ""},
		},
	},
	{
		"rereg", "Re-registration", "ibv_rereg_mr", []Row{
			{"translation", "other memory under the same key", ""},
			{"domain", "another domain: the QP's requests are refused", ""},
			{"access", "other rights", ""},
			{"under_way", "a message never has a part of each: refused", ""},
			{"read_again", "a READ that is asked for again is refused", ""},
			{"refused", "input errors, or windows are bound: all stays", ""},
		},
	},
	{
		"state", "Queue pair states", "IBA 10.3.1", []Row{
			{"RESET", "posting fails, packets are dropped", ""},
			{"INIT", "receives are kept, packets dropped", ""},
			{"RTR", "requests are served, sending fails", ""},
			{"RTS", "everything works", ""},
			{"SQD", "what has begun ends, what is new waits, requests are served", ""},
			{"SQE", "sends are flushed, requests are served", ""},
			{"ERR", "everything is flushed, packets are dropped", ""},
			{"to RESET", "all is forgotten, completions too", ""},
			{"to ERR", "both queues are flushed in order", ""},
		},
	},
	{
		"move", "Moves between states", "IBA 11.2.5.2, kernel qp_state_table", []Row{
			{"RESET-INIT", "", ""},
			{"INIT-INIT", "", ""},
			{"INIT-RTR", "", ""},
			{"RTR-RTS", "", ""},
			{"RTS-RTS", "", ""},
			{"RTS-SQD", "", ""},
			{"SQD-SQD", "", ""},
			{"SQD-RTS", "", ""},
			{"SQE-RTS", "", ""},
			{"any-RESET", "", ""},
			{"any-ERR", "", ""},
			{"illegal", "everything else", ""},
			{"cur_state", "CUR_STATE must be the current state", ""},
		},
	},
	{
		"event", "Asynchronous events", "IBA 11.6.3", []Row{
			{"CQ_ERR", "a CQ overran", ""},
			{"QP_FATAL", "ERR for a reason that no completion tells", ""},
			{"QP_REQ_ERR", "the peer sent what it must not", ""},
			{"QP_ACCESS_ERR", "the peer reached for memory that is not its", ""},
			{"COMM_EST", "the first request came in RTR", ""},
			{"SQ_DRAINED", "SQD has finished what had begun", ""},
			{"SRQ_ERR", "the CQ of an SRQ for XRC overran", ""},
			{"SRQ_LIMIT_REACHED", "fewer receives than the armed limit", ""},
			{"QP_LAST_WQE_REACHED", "a QP in ERR takes no more from its SRQ", ""},
		},
	},
	{
		"credit", "Credits from end to end", "IBA 9.7.7.2", []Row{
			{"told", "positive answers tell how many receives there are", ""},
			{"granted", "an unasked ACK when there is one again", ""},
			{"limit", "no SEND beyond MSN + credits", ""},
			{"question", "but one, which asks for an ACK", ""},
			{"srq", "receives of an SRQ are not counted", ""},
			{"off", "none are told or heeded when one end has no flow control", ""},
		},
	},
	{
		"uc", "Unreliable connection", "IBA 9.8.2", []Row{
			{"complete", "complete when sent; no AckReq, no answer", ""},
			{"expected", "executed", ""},
			{"gap", "everything up to the next first or only is dropped", ""},
			{"receive_kept", "the receive in hand goes to the next message", ""},
			{"refused", "what is wrong is dropped, the QP stays usable", ""},
			{"no_receive", "a message without a receive is dropped", ""},
		},
	},
	{
		"ud", "Unreliable datagram", "IBA 9.8.3", []Row{
			{"sent", "one packet to where the work request says", ""},
			{"qkey_own", "a Q_Key with the top bit set stands for the QP's own", ""},
			{"too_long", "longer than the port's MTU: not sent, completes", ""},
			{"received", "40 bytes of addresses, then the payload", ""},
			{"psn", "the PSN of a datagram does not matter", ""},
			{"qkey", "a wrong Q_Key: dropped", ""},
			{"no_receive", "no receive: dropped", ""},
			{"too_small", "a receive that is too small: dropped, it stays", ""},
		},
	},
	{
		"srq", "Shared receive queues", "IBA 10.2.9", []Row{
			{"order", "receives are taken in order and kept for a message", ""},
			{"empty", "RNR NAK", ""},
			{"limit", "the limit is told once", ""},
			{"error", "ERR flushes the one in hand and leaves the others", ""},
		},
	},
	{
		"xrc", "Extended reliable connection", "IBA annex A14", []Row{
			{"initiator", "every request packet names the SRQ", ""},
			{"target", "receives come from there", ""},
			{"no_srq", "an SRQ that the domain has not: NAK 0x61", ""},
		},
	},
}

// numbers makes a row of each number.
func numbers(n int, text func(int) string) []Row {
	var rows []Row
	for i := range n {
		r := Row{Name: strconv.Itoa(i)}
		if text != nil {
			r.Text = text(i)
		}
		rows = append(rows, r)
	}
	return rows
}

func timeoutText(code int) string {
	if code == 0 {
		return "no timer"
	}
	return fmt.Sprintf("4.096 us * 2^%d", code)
}

// known reports whether some table has a row, written as covers: does.
func known(covers string) bool {
	for _, t := range Tables {
		for _, r := range t.Rows {
			if covers == t.Name+" "+r.Name {
				return true
			}
		}
	}
	return false
}
