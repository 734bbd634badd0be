package conversation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// An attribute of a QP by the name that the language has for it. Values travel
// as numbers.
type attribute struct {
	name  string
	bit   roce.AttrMask
	parse func(string) (uint64, error)
	get   func(*roce.Attr) uint64
	set   func(*roce.Attr, uint64)
}

// format prints a value as parse reads it.
func (t *attribute) format(v uint64) string {
	switch t.name {
	case "state", "cur_state":
		return roce.State(v).String()
	case "access":
		return mem.Access(v).String()
	case "pmtu":
		return wire.MTU(v).String()
	}
	return strconv.FormatUint(v, 10)
}

// attributes are in the order of enum ibv_qp_attr_mask. Those without set are
// bits that no value belongs to here: a move that takes them is still to be told
// from one that does not. sq_draining can only be asked for.
var attributes = []attribute{
	{
		"state", roce.AttrState, parseState,
		func(a *roce.Attr) uint64 { return uint64(a.State) },
		func(a *roce.Attr, v uint64) { a.State = roce.State(v) },
	},
	{name: "sq_draining", parse: parseNumber, get: func(a *roce.Attr) uint64 {
		if a.SQDraining {
			return 1
		}
		return 0
	}},
	{
		"cur_state", roce.AttrCurState, parseState,
		func(a *roce.Attr) uint64 { return uint64(a.CurState) },
		func(a *roce.Attr, v uint64) { a.CurState = roce.State(v) },
	},
	{name: "en_sqd_async_notify", bit: roce.AttrEnSQDAsyncNotify, parse: parseNumber},
	{
		"access", roce.AttrAccess, parseRights,
		func(a *roce.Attr) uint64 { return uint64(a.Access) },
		func(a *roce.Attr, v uint64) { a.Access = mem.Access(v) },
	},
	{
		"pkey_index", roce.AttrPKeyIndex, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.PKeyIndex) },
		func(a *roce.Attr, v uint64) { a.PKeyIndex = uint16(v) },
	},
	{
		"port", roce.AttrPort, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.Port) },
		func(a *roce.Attr, v uint64) { a.Port = uint8(v) },
	},
	{
		"qkey", roce.AttrQKey, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.QKey) },
		func(a *roce.Attr, v uint64) { a.QKey = uint32(v) },
	},
	{
		"av", roce.AttrAV, parsePeer,
		func(a *roce.Attr) uint64 { return uint64(a.Path.Dst[15]) },
		func(a *roce.Attr, v uint64) { a.Path = pathTo(byte(v)) },
	},
	{
		"pmtu", roce.AttrPathMTU, parseMTU,
		func(a *roce.Attr) uint64 { return uint64(a.PathMTU) },
		func(a *roce.Attr, v uint64) { a.PathMTU = wire.MTU(v) },
	},
	{
		"timeout", roce.AttrTimeout, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.Timeout) },
		func(a *roce.Attr, v uint64) { a.Timeout = uint8(v) },
	},
	{
		"retry_cnt", roce.AttrRetryCnt, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.RetryCnt) },
		func(a *roce.Attr, v uint64) { a.RetryCnt = uint8(v) },
	},
	{
		"rnr_retry", roce.AttrRNRRetry, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.RNRRetry) },
		func(a *roce.Attr, v uint64) { a.RNRRetry = uint8(v) },
	},
	{
		"rq_psn", roce.AttrRQPSN, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.RQPSN) },
		func(a *roce.Attr, v uint64) { a.RQPSN = wire.PSN(v) },
	},
	{
		"max_rd_atomic", roce.AttrMaxRdAtomic, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.MaxRdAtomic) },
		func(a *roce.Attr, v uint64) { a.MaxRdAtomic = uint8(v) },
	},
	{name: "alt_path", bit: roce.AttrAltPath, parse: parseNumber},
	{
		"min_rnr_timer", roce.AttrMinRNRTimer, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.MinRNRTimer) },
		func(a *roce.Attr, v uint64) { a.MinRNRTimer = uint8(v) },
	},
	{
		"sq_psn", roce.AttrSQPSN, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.SQPSN) },
		func(a *roce.Attr, v uint64) { a.SQPSN = wire.PSN(v) },
	},
	{
		"max_dest_rd_atomic", roce.AttrMaxDestRdAtomic, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.MaxDestRdAtomic) },
		func(a *roce.Attr, v uint64) { a.MaxDestRdAtomic = uint8(v) },
	},
	{name: "path_mig_state", bit: roce.AttrPathMigState, parse: parseNumber},
	{name: "cap", bit: roce.AttrCap, parse: parseNumber},
	{
		"dest_qpn", roce.AttrDestQPN, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.DestQPN) },
		func(a *roce.Attr, v uint64) { a.DestQPN = uint32(v) },
	},
	{
		"rate_limit", roce.AttrRateLimit, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.RateLimit) },
		func(a *roce.Attr, v uint64) { a.RateLimit = uint32(v) },
	},
	{
		"keepalive", roce.AttrKeepalive, parseNumber,
		func(a *roce.Attr) uint64 { return uint64(a.Keepalive) },
		func(a *roce.Attr, v uint64) { a.Keepalive = uint32(v) },
	},
	{
		"no_flow_control", roce.AttrFlowControl, parseNumber,
		func(a *roce.Attr) uint64 {
			if a.NoFlowControl {
				return 1
			}
			return 0
		},
		func(a *roce.Attr, v uint64) { a.NoFlowControl = v != 0 },
	},
}

// parseState reads the name of a state, or a number that may be none.
func parseState(s string) (uint64, error) {
	if v, err := oneOf(states)(s); err == nil {
		return uint64(v), nil
	}
	return parseNumber(s)
}

// parseMTU reads a number of bytes, or code:N for what no number of bytes is.
func parseMTU(s string) (uint64, error) {
	if code, ok := strings.CutPrefix(s, "code:"); ok {
		return parseNumber(code)
	}
	n, err := parseNumber(s)
	if err != nil || n > 4096 {
		return 0, fmt.Errorf("%q is not a path MTU", s)
	}
	m, ok := wire.MTUFromBytes(int(n))
	if !ok {
		return 0, fmt.Errorf("%d bytes are no path MTU", n)
	}
	return uint64(m), nil
}

// parsePeer reads the words for the two hosts that a path can lead to.
func parsePeer(s string) (uint64, error) {
	switch s {
	case "peer":
		return peerHost, nil
	case "other":
		return otherHost, nil
	case "nowhere":
		return 0, nil
	}
	return 0, fmt.Errorf("%q is not peer, other or nowhere", s)
}

// attrValue is a value of an attribute.
type attrValue struct {
	*attribute
	v   uint64
	pos Pos
}

// readAttrs reads all attributes that a statement names.
func readAttrs(a *args) []attrValue {
	var list []attrValue
	for i := range attributes {
		t := &attributes[i]
		if tok, ok := a.value(t.name); ok {
			v, err := t.parse(tok.text)
			if err != nil {
				a.fail(tok.pos, "%s: %v", t.name, err)
			} else if t.set != nil {
				var attr roce.Attr
				if t.set(&attr, v); t.get(&attr) != v {
					a.fail(tok.pos, "%s: %d has too many bits", t.name, v)
				}
			}
			list = append(list, attrValue{t, v, tok.pos})
		}
	}
	return list
}

// maskOf is the mask of the attributes with these names.
func maskOf(names []string) roce.AttrMask {
	var m roce.AttrMask
	for _, t := range attributes {
		if slices.Contains(names, t.name) {
			m |= t.bit
		}
	}
	return m
}
