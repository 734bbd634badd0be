package roce_test

import (
	"reflect"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

type attrChange = func(a *roce.Attr)

// moveTo asks for a state and makes more changes.
func moveTo(state roce.State, more ...attrChange) attrChange {
	return func(a *roce.Attr) {
		a.State = state
		for _, c := range more {
			c(a)
		}
	}
}

// refusedMoves are calls of Modify that must fail, with words of the error.
var refusedMoves = []struct {
	in     roce.State
	change attrChange
	mask   roce.AttrMask
	kind   error
	words  []string
}{
	{
		roce.StateReset, moveTo(roce.StateInit), maskInit &^ roce.AttrPort, roce.ErrInvalid,
		[]string{"RESET to INIT needs PORT"},
	},
	{
		roce.StateReset, moveTo(roce.StateInit), maskInit | roce.AttrSQPSN, roce.ErrInvalid,
		[]string{"does not take SQ_PSN"},
	},
	{
		roce.StateReset, moveTo(roce.StateInit, func(a *roce.Attr) { a.Port = 2 }), maskInit,
		roce.ErrInvalid,
		[]string{"PORT 2"},
	},
	{
		roce.StateReset, moveTo(roce.StateInit, func(a *roce.Attr) { a.PKeyIndex = 1 }), maskInit,
		roce.ErrInvalid,
		[]string{"PKEY_INDEX 1"},
	},
	{roce.StateReset, moveTo(roce.StateRTR), maskRTR, roce.ErrState, []string{"RESET to RTR"}},
	{roce.StateReset, moveTo(200), roce.AttrState, roce.ErrInvalid, []string{"state 200"}},
	{
		roce.StateReset, moveTo(roce.StateReset), roce.AttrState | roce.AttrPort, roce.ErrInvalid,
		[]string{"PORT"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR), maskRTR &^ (roce.AttrAV | roce.AttrRQPSN),
		roce.ErrInvalid,
		[]string{"needs AV RQ_PSN"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.PathMTU = 0 }), maskRTR,
		roce.ErrInvalid,
		[]string{"PATH_MTU code 0"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.PathMTU = 6 }), maskRTR,
		roce.ErrInvalid,
		[]string{"PATH_MTU code 6"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.DestQPN = 1 << 24 }), maskRTR,
		roce.ErrInvalid,
		[]string{"DEST_QPN 16777216"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) {
			a.Path.Dst = wire.GID{10: 0xff, 0xff, 239, 1, 1, 1}
		}), maskRTR,
		roce.ErrInvalid,
		[]string{"AV", "239.1.1.1", "group"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) {
			a.Path.DstMAC = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		}), maskRTR,
		roce.ErrInvalid,
		[]string{"AV", "ffffffffffff is a group"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.MinRNRTimer = 32 }), maskRTR,
		roce.ErrInvalid,
		[]string{"MIN_RNR_TIMER 32"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.MaxDestRdAtomic = 129 }),
		maskRTR,
		roce.ErrInvalid,
		[]string{"MAX_DEST_RD_ATOMIC 129"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.Path.Framing = 0 }), maskRTR,
		roce.ErrInvalid,
		[]string{"AV", "framing"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.CurState = roce.StateInit }),
		maskRTR | roce.AttrCurState, roce.ErrInvalid,
		[]string{"CUR_STATE"},
	},
	{
		roce.StateRTR, moveTo(roce.StateRTS, func(a *roce.Attr) { a.Timeout = 32 }), maskRTS,
		roce.ErrInvalid,
		[]string{"TIMEOUT 32"},
	},
	{
		roce.StateRTR, moveTo(roce.StateRTS, func(a *roce.Attr) { a.RetryCnt = 8 }), maskRTS,
		roce.ErrInvalid,
		[]string{"RETRY_CNT 8"},
	},
	{
		roce.StateRTR, moveTo(roce.StateRTS, func(a *roce.Attr) { a.RNRRetry = 8 }), maskRTS,
		roce.ErrInvalid,
		[]string{"RNR_RETRY 8"},
	},
	{
		roce.StateRTR, moveTo(roce.StateRTS, func(a *roce.Attr) { a.MaxRdAtomic = 129 }), maskRTS,
		roce.ErrInvalid,
		[]string{"MAX_QP_RD_ATOMIC 129"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.PathBytes = 1422 }),
		maskRTR | roce.AttrPathBytes, roce.ErrInvalid,
		[]string{"PATH_BYTES 1422"},
	},
	{
		roce.StateInit, moveTo(roce.StateRTR, func(a *roce.Attr) { a.PathBytes = 4100 }),
		maskRTR | roce.AttrPathBytes, roce.ErrInvalid,
		[]string{"PATH_BYTES 4100"},
	},
	{
		roce.StateRTR, moveTo(roce.StateRTS, func(a *roce.Attr) { a.CurState = roce.StateInit }),
		maskRTS | roce.AttrCurState, roce.ErrState,
		[]string{"CUR_STATE says INIT"},
	},
	{roce.StateRTR, moveTo(roce.StateSQD), roce.AttrState, roce.ErrState, []string{"RTR to SQD"}},
	{roce.StateRTS, moveTo(roce.StateInit), maskInit, roce.ErrState, []string{"RTS to INIT"}},
	{roce.StateRTS, moveTo(roce.StateSQE), roce.AttrState, roce.ErrState, []string{"RTS to SQE"}},
	{
		roce.StateRTS, moveTo(roce.StateRTS), roce.AttrState | 1<<24, roce.ErrInvalid,
		[]string{"0x1000000"},
	},
	{roce.StateErr, moveTo(roce.StateRTS), maskRTS, roce.ErrState, []string{"ERR to RTS"}},
}

// TestModifyNamesTheAttribute that is missing, superfluous or out of range, and
// changes nothing.
func TestModifyNamesTheAttribute(t *testing.T) {
	for _, tt := range refusedMoves {
		s := in(t, tt.in)
		before := s.qp.Attr()
		a := s.o.attr(qpnB)
		tt.change(&a)
		wantErr(t, s.qp.Modify(0, &a, tt.mask), tt.kind, tt.words...)
		if s.qp.Attr() != before {
			t.Errorf("%v: attributes changed", tt.words)
		}
	}
}

// TestModifyMasks: PSNs have 24 bits, and only what the mask names is taken.
func TestModifyMasks(t *testing.T) {
	s := newScriptIn(t, options{}, roce.StateInit)
	a := s.o.attr(qpnB)
	a.State, a.RQPSN, a.RetryCnt = roce.StateRTR, 0x12345678, 5
	must(t, s.qp.Modify(0, &a, maskRTR))
	got := s.qp.Attr()
	if got.RQPSN != 0x345678 || got.RetryCnt != 0 {
		t.Errorf("RQ_PSN %#x, RETRY_CNT %d", got.RQPSN, got.RetryCnt)
	}
	if want := wire.SourcePort(0, qpnA, qpnB); got.Path.SrcPort != want {
		t.Errorf("source port %d, want %d", got.Path.SrcPort, want)
	}
}

// TestNewQPRefuses what no QP can be, and names it.
func TestNewQPRefuses(t *testing.T) {
	for words, change := range map[string]func(c *roce.QPConfig){
		"type 5":             func(c *roce.QPConfig) { c.Type = 5 },
		"protection domain":  func(c *roce.QPConfig) { c.Domain = nil },
		"keys":               func(c *roce.QPConfig) { c.Common.Keys = nil },
		"keys and counters":  func(c *roce.QPConfig) { c.Common = nil },
		"counters":           func(c *roce.QPConfig) { c.Counters = nil },
		"send CQ":            func(c *roce.QPConfig) { c.SendCQ = nil },
		"receive CQ":         func(c *roce.QPConfig) { c.RecvCQ = nil },
		"window":             func(c *roce.QPConfig) { c.Window = -1 },
		"window 65537":       func(c *roce.QPConfig) { c.Window = 65537 },
		"send queue depth":   func(c *roce.QPConfig) { c.MaxSendWR = 0 },
		"receive queue":      func(c *roce.QPConfig) { c.MaxRecvWR = roce.MaxWR + 1 },
		"send queue SGEs":    func(c *roce.QPConfig) { c.MaxSendSGE = roce.MaxSGE + 1 },
		"receive queue SGEs": func(c *roce.QPConfig) { c.MaxRecvSGE = 0 },
	} {
		e := newEndpoint(t, qpnA, options{}.filled())
		c := e.config(options{}.filled())
		change(&c)
		_, err := roce.NewQP(1, c)
		wantErr(t, err, roce.ErrInvalid, words)
	}
}

// TestQPSize: many QPs fit in little memory.
func TestQPSize(t *testing.T) {
	if size := reflect.TypeFor[roce.QP]().Size(); size > 1024 {
		t.Errorf("a QP has %d bytes, the limit is 1024", size)
	}
}
