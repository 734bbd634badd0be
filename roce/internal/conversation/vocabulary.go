package conversation

import (
	"fmt"
	"strings"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// The words of the language, by kind. A new operation, status or attribute of
// package roce is one more line here.

// qpType is what the language must know of a transport service: its number, and
// which attributes take a QP from RESET to RTS.
type qpType struct {
	num            roce.QPType
	init, rtr, rts []string
}

// Attributes that several types need for a move.
var (
	toInit  = []string{"pkey_index", "port", "access"}
	toPeer  = []string{"av", "pmtu", "dest_qpn", "rq_psn"}
	toServe = append([]string{"max_dest_rd_atomic", "min_rnr_timer"}, toPeer...)
	toAsk   = []string{"timeout", "retry_cnt", "rnr_retry", "sq_psn", "max_rd_atomic"}
)

var qpTypes = map[string]qpType{
	"rc":       {roce.TypeRC, toInit, toServe, toAsk},
	"uc":       {roce.TypeUC, toInit, toPeer, []string{"sq_psn"}},
	"ud":       {roce.TypeUD, []string{"pkey_index", "port", "qkey"}, nil, []string{"sq_psn"}},
	"gsi":      {roce.TypeGSI, []string{"pkey_index", "qkey"}, nil, []string{"sq_psn"}},
	"xrc_send": {roce.TypeXRCSend, toInit, toPeer, toAsk},
	"xrc_recv": {roce.TypeXRCRecv, toInit, toServe, []string{"timeout", "sq_psn"}},
}

var states = nameTable(roce.StateReset, roce.StateInit, roce.StateRTR, roce.StateRTS,
	roce.StateSQD, roce.StateSQE, roce.StateErr)

// nameTable maps the names of values, in lower case, to the values.
func nameTable[T fmt.Stringer](values ...T) map[string]T {
	t := map[string]T{}
	for _, v := range values {
		t[strings.ToLower(v.String())] = v
	}
	return t
}

// sendOps are the operations of the send queue.
var sendOps = map[string]roce.Opcode{
	"write": roce.OpWrite, "write_imm": roce.OpWriteImm, "send": roce.OpSend,
	"send_imm": roce.OpSendImm, "send_inv": roce.OpSendInv, "read": roce.OpRead,
	"cmp_swap": roce.OpCmpSwap, "fetch_add": roce.OpFetchAdd, "local_inv": roce.OpLocalInv,
	"flush": roce.OpFlush, "atomic_write": roce.OpAtomicWrite,
	"bind_mw": roce.OpBindMW,
}

// sendFlags are the flags of a send work request that are words; inline= is the
// other one.
var sendFlags = []struct {
	name string
	bit  roce.SendFlags
}{
	{"fence", roce.SendFence},
	{"signaled", roce.SendSignaled},
	{"solicited", roce.SendSolicited},
}

// statuses are the words for enum ibv_wc_status.
var statuses = map[string]roce.Status{
	"success": 0, "loc_len_err": 1, "loc_qp_op_err": 2, "loc_eec_op_err": 3,
	"loc_prot_err": 4, "wr_flush_err": 5, "mw_bind_err": 6, "bad_resp_err": 7,
	"loc_access_err": 8, "rem_inv_req_err": 9, "rem_access_err": 10, "rem_op_err": 11,
	"retry_exc_err": 12, "rnr_retry_exc_err": 13, "loc_rdd_viol_err": 14,
	"rem_inv_rd_req_err": 15, "rem_abort_err": 16, "inv_eecn_err": 17,
	"inv_eec_state_err": 18, "fatal_err": 19, "resp_timeout_err": 20, "general_err": 21,
	"tm_err": 22, "tm_rndv_incomplete": 23,
}

// completed are the words for enum ibv_wc_opcode.
var completed = map[string]roce.WCOpcode{
	"send": 0, "write": 1, "read": 2, "cmp_swap": 3, "fetch_add": 4, "bind_mw": 5,
	"local_inv": 6, "flush": 8, "atomic_write": 9, "recv": 128, "recv_rdma_with_imm": 129,
}

// rights are the words for enum ibv_access_flags. The last one is our own.
var rights = map[string]mem.Access{
	"local_write": 1 << 0, "remote_write": 1 << 1, "remote_read": 1 << 2,
	"remote_atomic": 1 << 3, "mw_bind": 1 << 4, "zero_based": 1 << 5, "flush_global": 1 << 8,
	"flush_persistent": 1 << 9,
	"invalidatable":    1 << 31,
}

// events are the words for enum ibv_event_type.
var events = map[string]roce.Event{
	"cq_err": roce.EventCQErr, "qp_fatal": roce.EventQPFatal, "qp_req_err": roce.EventQPReqErr,
	"qp_access_err": roce.EventQPAccessErr, "comm_est": roce.EventCommEst,
	"sq_drained": roce.EventSQDrained, "qp_last_wqe_reached": roce.EventQPLastWQEReached,
	"srq_limit_reached": roce.EventSRQLimitReached, "srq_err": roce.EventSRQErr,
}

// anyCredits is the bit that ack has and no syndrome: in a packet that is sent,
// ack is every positive acknowledge, whatever its credits.
const anyCredits = 1 << 8

// syndromes are the words for syndromes without a number in them.
var syndromes = map[string]wire.Syndrome{
	"credits:none":             wire.ACKNoCredits,
	"psn_sequence_error":       wire.NAKPSNSequenceError,
	"invalid_request":          wire.NAKInvalidRequest,
	"remote_access_error":      wire.NAKRemoteAccessError,
	"remote_operational_error": wire.NAKRemoteOperationalError,
	"invalid_rd_request":       wire.NAKInvalidRDRequest,
}

// packets are the names of the packets: RC ones without a prefix.
var packets = packetNames()

func packetNames() map[string]wire.Opcode {
	t := map[string]wire.Opcode{}
	for op, spec := range wire.Opcodes() {
		t[packetName(spec)] = op
	}
	return t
}

func packetName(spec *wire.OpcodeSpec) string {
	return strings.TrimPrefix(strings.ToLower(spec.Name), "rc_")
}

var counters = counterNames()

func counterNames() map[string]counter.ID {
	t := map[string]counter.ID{}
	for id := range counter.Count {
		t[id.String()] = id
	}
	return t
}

// refusals are the reasons of the decoder.
var refusals = refusalNames()

func refusalNames() map[string]wire.Reason {
	t := map[string]wire.Reason{}
	for r := range wire.Reason(wire.NumReasons) {
		t[r.String()] = r
	}
	return t
}

// nameOf finds the word for a value.
func nameOf[T comparable](table map[string]T, v T) string {
	for name, one := range table {
		if one == v {
			return name
		}
	}
	return fmt.Sprint(v)
}

// oneOf parses a word of a table.
func oneOf[T any](table map[string]T) func(string) (T, error) {
	return func(s string) (T, error) {
		v, ok := table[strings.ToLower(s)]
		if !ok {
			return v, fmt.Errorf("%q is not a word for it", s)
		}
		return v, nil
	}
}

// parseRights reads words for access flags with | between them, or none.
func parseRights(s string) (uint64, error) {
	var all mem.Access
	for _, word := range strings.Split(s, "|") {
		a, ok := rights[word]
		if !ok && s != "none" {
			return 0, fmt.Errorf("%q is not an access right", word)
		}
		all |= a
	}
	return uint64(all), nil
}

// parseSyndrome reads a word for a syndrome, rnr:CODE, credits:CODE, or a number.
func parseSyndrome(s string) (uint64, error) {
	if v, ok := syndromes[s]; ok {
		return uint64(v), nil
	}
	if s == "ack" {
		return anyCredits | uint64(wire.ACKNoCredits), nil
	}
	kind, code, ok := strings.Cut(s, ":")
	if !ok {
		return parseNumber(s)
	}
	n, err := parseNumber(code)
	switch {
	case err != nil:
		return 0, err
	case n > 31:
		return 0, fmt.Errorf("a code of 0 to 31, not %d", n)
	case kind == "rnr":
		return uint64(wire.RNRSyndrome(uint8(n))), nil
	case kind == "credits":
		return uint64(wire.ACKSyndrome(uint8(n))), nil
	}
	return 0, fmt.Errorf("%q is not a syndrome", s)
}

func formatSyndrome(v uint64) string {
	s := wire.Syndrome(v)
	for name, one := range syndromes {
		if one == s {
			return name
		}
	}
	switch {
	case v < 0x20:
		return fmt.Sprintf("credits:%d", v)
	case v < 0x40:
		return fmt.Sprintf("rnr:%d", s.Code())
	}
	return fmt.Sprintf("%#02x", v)
}
