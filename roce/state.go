package roce

import (
	"fmt"
	"strings"
)

// State is the state of a QP, with the values of enum ibv_qp_state.
type State uint8

// The states of a QP.
const (
	StateReset State = iota
	StateInit
	StateRTR
	StateRTS
	StateSQD
	StateSQE
	StateErr

	stateCount
)

var stateNames = [stateCount]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String returns the state as verbs spells it.
func (s State) String() string {
	if s >= stateCount {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return stateNames[s]
}

// QPType is the transport service of a QP, with the values of enum ibv_qp_type.
type QPType uint8

// TypeRC is the reliable connection.
const TypeRC QPType = 2

// String returns the type as verbs spells it.
func (t QPType) String() string {
	if t == TypeRC {
		return "RC"
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// AttrMask names attributes of a QP, with the values of enum ibv_qp_attr_mask.
type AttrMask uint32

// The attributes.
const (
	AttrState           AttrMask = 1 << 0
	AttrCurState        AttrMask = 1 << 1
	AttrAccess          AttrMask = 1 << 3
	AttrPKeyIndex       AttrMask = 1 << 4
	AttrPort            AttrMask = 1 << 5
	AttrAV              AttrMask = 1 << 7
	AttrPathMTU         AttrMask = 1 << 8
	AttrTimeout         AttrMask = 1 << 9
	AttrRetryCnt        AttrMask = 1 << 10
	AttrRNRRetry        AttrMask = 1 << 11
	AttrRQPSN           AttrMask = 1 << 12
	AttrMaxRdAtomic     AttrMask = 1 << 13
	AttrMinRNRTimer     AttrMask = 1 << 15
	AttrSQPSN           AttrMask = 1 << 16
	AttrMaxDestRdAtomic AttrMask = 1 << 17
	AttrDestQPN         AttrMask = 1 << 20
)

var attrNames = map[AttrMask]string{
	AttrState: "STATE", AttrCurState: "CUR_STATE", AttrAccess: "ACCESS_FLAGS",
	AttrPKeyIndex: "PKEY_INDEX", AttrPort: "PORT", AttrAV: "AV", AttrPathMTU: "PATH_MTU",
	AttrTimeout: "TIMEOUT", AttrRetryCnt: "RETRY_CNT", AttrRNRRetry: "RNR_RETRY",
	AttrRQPSN: "RQ_PSN", AttrMaxRdAtomic: "MAX_QP_RD_ATOMIC", AttrMinRNRTimer: "MIN_RNR_TIMER",
	AttrSQPSN: "SQ_PSN", AttrMaxDestRdAtomic: "MAX_DEST_RD_ATOMIC", AttrDestQPN: "DEST_QPN",
}

// String lists the attributes as verbs spells them, without the prefix.
func (m AttrMask) String() string {
	var names []string
	for bit := AttrMask(1); bit != 0; bit <<= 1 {
		if m&bit == 0 {
			continue
		}
		if name, ok := attrNames[bit]; ok {
			names = append(names, name)
		} else {
			names = append(names, fmt.Sprintf("%#x", uint32(bit)))
		}
	}
	return strings.Join(names, " ")
}

// A move is one edge of the state graph: the attributes that it must and that
// it may set beside the state itself.
type move struct {
	legal              bool
	required, optional AttrMask
}

// rcMoves is the state graph of an RC QP (IBA 11.2.5.2, kernel
// drivers/infiniband/core/verbs.c qp_state_table). Every state may also go to
// RESET and to ERR, with no attribute; see moveOf.
var rcMoves = [stateCount][stateCount]move{
	StateReset: {
		StateInit: {legal: true, required: AttrPKeyIndex | AttrPort | AttrAccess},
	},
	StateInit: {
		StateInit: {legal: true, optional: AttrPKeyIndex | AttrPort | AttrAccess},
		StateRTR: {
			legal: true,
			required: AttrAV | AttrPathMTU | AttrDestQPN | AttrRQPSN | AttrMaxDestRdAtomic |
				AttrMinRNRTimer,
			optional: AttrAccess | AttrPKeyIndex,
		},
	},
	StateRTR: {
		StateRTS: {
			legal:    true,
			required: AttrTimeout | AttrRetryCnt | AttrRNRRetry | AttrSQPSN | AttrMaxRdAtomic,
			optional: AttrCurState | AttrAccess | AttrMinRNRTimer,
		},
	},
	StateRTS: {
		StateRTS: {legal: true, optional: AttrCurState | AttrAccess | AttrMinRNRTimer},
		StateSQD: {legal: true},
	},
	StateSQD: {
		StateRTS: {legal: true, optional: AttrCurState | AttrAccess | AttrMinRNRTimer},
		StateSQD: {
			legal: true,
			optional: AttrPort | AttrAV | AttrTimeout | AttrRetryCnt | AttrRNRRetry |
				AttrMaxRdAtomic | AttrMaxDestRdAtomic | AttrAccess | AttrPKeyIndex |
				AttrMinRNRTimer,
		},
	},
}

// moveOf returns the edge between two states of an RC QP.
func moveOf(from, to State) move {
	if to == StateReset || to == StateErr {
		return move{legal: true}
	}
	return rcMoves[from][to]
}

// checkMove returns nil when the mask fits the edge, and else an error that
// names what is missing or too much.
func checkMove(from, to State, mask AttrMask) error {
	m := moveOf(from, to)
	if !m.legal {
		return fmt.Errorf("%w: no move from %s to %s", ErrState, from, to)
	}
	mask &^= AttrState
	if missing := m.required &^ mask; missing != 0 {
		return fmt.Errorf("%w: %s to %s needs %s", ErrInvalid, from, to, missing)
	}
	if extra := mask &^ (m.required | m.optional); extra != 0 {
		return fmt.Errorf("%w: %s to %s does not take %s", ErrInvalid, from, to, extra)
	}
	return nil
}

// receives tells whether a QP in this state takes packets.
func (s State) receives() bool { return s == StateRTR || s == StateRTS || s == StateSQD }

// sends tells whether a QP in this state has a running send queue.
func (s State) sends() bool { return s == StateRTS || s == StateSQD }
