package verbs

import "fmt"

// A transition is one edge of the state graph: the attributes that it must and that
// it may set beside the state itself.
type transition struct {
	legal              bool
	required, optional AttrMask
}

// Sets of types that share a row of the table.
const (
	rcTypes  onTypes = 1 << TypeRC
	xsTypes  onTypes = 1 << TypeXRCSend
	xrTypes  onTypes = 1 << TypeXRCRecv
	ucTypes  onTypes = 1 << TypeUC
	udTypes  onTypes = 1<<TypeUD | 1<<TypeGSI
	rawTypes onTypes = 1 << TypeRawPacket
	allTypes onTypes = rcTypes | xsTypes | xrTypes | ucTypes | udTypes | rawTypes
)

// Attributes that go together.
const (
	attrPeer  = AttrAV | AttrPathMTU | AttrDestQPN | AttrRQPSN
	attrRetry = AttrTimeout | AttrRetryCnt | AttrRNRRetry
)

// transitionRows is the state graph (IBA 11.2.5.2, kernel
// drivers/infiniband/core/verbs.c qp_state_table), without path migration. A
// row adds to what the rows above it say of the same edge. Every state may also
// go to RESET and to ERR, with no attribute; see transitionOf.
var transitionRows = []struct {
	from, to           State
	types              onTypes
	required, optional AttrMask
}{
	{
		StateReset, StateInit, rcTypes | ucTypes | xsTypes | xrTypes,
		AttrPKeyIndex | AttrPort | AttrAccess, 0,
	},
	{StateReset, StateInit, 1 << TypeUD, AttrPKeyIndex | AttrPort | AttrQKey, 0},
	{StateReset, StateInit, 1 << TypeGSI, AttrPKeyIndex | AttrQKey, 0},
	{StateReset, StateInit, rawTypes, AttrPort, 0},

	{
		StateInit, StateInit, rcTypes | ucTypes | xsTypes | xrTypes,
		0, AttrPKeyIndex | AttrPort | AttrAccess,
	},
	{StateInit, StateInit, 1 << TypeUD, 0, AttrPKeyIndex | AttrPort | AttrQKey},
	{StateInit, StateInit, 1 << TypeGSI, 0, AttrPKeyIndex | AttrQKey},
	{StateInit, StateInit, rawTypes, 0, AttrPort},

	{
		StateInit, StateRTR, rcTypes | xrTypes,
		attrPeer | AttrMaxDestRdAtomic | AttrMinRNRTimer, AttrAccess | AttrPKeyIndex,
	},
	{StateInit, StateRTR, ucTypes | xsTypes, attrPeer, AttrAccess | AttrPKeyIndex},
	{StateInit, StateRTR, udTypes, 0, AttrPKeyIndex | AttrQKey},
	{StateInit, StateRTR, rawTypes, 0, 0},
	{StateInit, StateRTR, rcTypes, 0, AttrExtensions | AttrPathBytes},
	{StateInit, StateRTR, rcTypes | xsTypes | xrTypes, 0, AttrFlowControl},
	{StateInit, StateRTR, rcTypes | ucTypes | xsTypes | xrTypes, 0, AttrCongestion},

	{
		StateRTR, StateRTS, rcTypes | xsTypes,
		attrRetry | AttrSQPSN | AttrMaxRdAtomic, AttrCurState | AttrAccess,
	},
	{StateRTR, StateRTS, xrTypes, AttrTimeout | AttrSQPSN, AttrCurState | AttrAccess},
	{StateRTR, StateRTS, rcTypes | xrTypes, 0, AttrMinRNRTimer},
	{StateRTR, StateRTS, ucTypes, AttrSQPSN, AttrCurState | AttrAccess},
	{StateRTR, StateRTS, udTypes, AttrSQPSN, AttrCurState | AttrQKey},
	{StateRTR, StateRTS, allTypes &^ xrTypes, 0, AttrRateLimit},
	{StateRTR, StateRTS, rcTypes, 0, AttrKeepalive},

	{StateRTS, StateRTS, rcTypes | xrTypes, 0, AttrMinRNRTimer},
	{StateRTS, StateRTS, rcTypes | ucTypes | xsTypes | xrTypes, 0, AttrCurState | AttrAccess},
	{StateRTS, StateRTS, udTypes, 0, AttrCurState | AttrQKey},
	{StateRTS, StateRTS, allTypes &^ xrTypes, 0, AttrRateLimit},
	{StateRTS, StateRTS, rcTypes, 0, AttrKeepalive},

	{StateSQD, StateRTS, rcTypes | xrTypes, 0, AttrMinRNRTimer},
	{StateSQD, StateRTS, rcTypes | ucTypes | xsTypes | xrTypes, 0, AttrCurState | AttrAccess},
	{StateSQD, StateRTS, udTypes, 0, AttrCurState | AttrQKey},
	{StateSQD, StateRTS, allTypes &^ xrTypes, 0, AttrRateLimit},

	{StateRTS, StateSQD, allTypes &^ rawTypes, 0, AttrEnSQDAsyncNotify},

	{StateSQD, StateSQD, rcTypes | xsTypes | xrTypes, 0, AttrPort | AttrTimeout},
	{StateSQD, StateSQD, rcTypes | xsTypes, 0, AttrRetryCnt | AttrRNRRetry | AttrMaxRdAtomic},
	{StateSQD, StateSQD, rcTypes | xrTypes, 0, AttrMaxDestRdAtomic | AttrMinRNRTimer},
	{
		StateSQD, StateSQD, rcTypes | ucTypes | xsTypes | xrTypes,
		0, AttrAV | AttrAccess | AttrPKeyIndex,
	},
	{StateSQD, StateSQD, udTypes, 0, AttrPKeyIndex | AttrQKey},
	{StateSQD, StateSQD, allTypes &^ xrTypes, 0, AttrRateLimit},

	{StateSQE, StateRTS, udTypes, 0, AttrCurState | AttrQKey},
	{StateSQE, StateRTS, ucTypes, 0, AttrCurState | AttrAccess},
	{StateSQE, StateRTS, rawTypes, 0, AttrCurState},
}

// transitions is transitionRows by type and edge.
var transitions = buildTransitions()

func buildTransitions() (t [typeCount][stateCount][stateCount]transition) {
	for _, row := range transitionRows {
		for typ := range QPType(typeCount) {
			if row.types&(1<<typ) != 0 {
				e := &t[typ][row.from][row.to]
				e.legal = true
				e.required |= row.required
				e.optional |= row.optional
			}
		}
	}
	return t
}

// transitionOf returns the edge between two states of a QP of a type.
func transitionOf(t QPType, from, to State) transition {
	if to == StateReset || to == StateErr {
		return transition{legal: true}
	}
	return transitions[t][from][to]
}

// CheckTransition returns nil when a QP of type t may go from one state to the other with
// the attributes in the mask. Otherwise the error is ErrState when there is no such edge, and
// ErrInvalid, with what is missing or too much, when the mask does not fit it. Type and
// states must be known ones.
func CheckTransition(t QPType, from, to State, mask AttrMask) error {
	e := transitionOf(t, from, to)
	if !e.legal {
		return fmt.Errorf("%w: no move from %s to %s for %s", ErrState, from, to, t)
	}
	mask &^= AttrState
	if missing := e.required &^ mask; missing != 0 {
		return fmt.Errorf("%w: %s to %s needs %s", ErrInvalid, from, to, missing)
	}
	if extra := mask &^ (e.required | e.optional); extra != 0 {
		return fmt.Errorf("%w: %s to %s does not take %s", ErrInvalid, from, to, extra)
	}
	return nil
}
