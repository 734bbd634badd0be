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

// AttrMask names attributes of a QP, with the values of enum ibv_qp_attr_mask.
type AttrMask uint32

// The attributes. AttrAltPath and AttrPathMigState are refused, since RoCE has
// no automatic path migration, and AttrCap, since a QP keeps its size.
const (
	AttrState            AttrMask = 1 << 0
	AttrCurState         AttrMask = 1 << 1
	AttrEnSQDAsyncNotify AttrMask = 1 << 2
	AttrAccess           AttrMask = 1 << 3
	AttrPKeyIndex        AttrMask = 1 << 4
	AttrPort             AttrMask = 1 << 5
	AttrQKey             AttrMask = 1 << 6
	AttrAV               AttrMask = 1 << 7
	AttrPathMTU          AttrMask = 1 << 8
	AttrTimeout          AttrMask = 1 << 9
	AttrRetryCnt         AttrMask = 1 << 10
	AttrRNRRetry         AttrMask = 1 << 11
	AttrRQPSN            AttrMask = 1 << 12
	AttrMaxRdAtomic      AttrMask = 1 << 13
	AttrAltPath          AttrMask = 1 << 14
	AttrMinRNRTimer      AttrMask = 1 << 15
	AttrSQPSN            AttrMask = 1 << 16
	AttrMaxDestRdAtomic  AttrMask = 1 << 17
	AttrPathMigState     AttrMask = 1 << 18
	AttrCap              AttrMask = 1 << 19
	AttrDestQPN          AttrMask = 1 << 20
	AttrRateLimit        AttrMask = 1 << 25
	// AttrExtensions is ours: see Extensions.
	AttrExtensions AttrMask = 1 << 30
)

var attrNames = map[AttrMask]string{
	AttrState: "STATE", AttrCurState: "CUR_STATE", AttrEnSQDAsyncNotify: "EN_SQD_ASYNC_NOTIFY",
	AttrAccess: "ACCESS_FLAGS", AttrPKeyIndex: "PKEY_INDEX", AttrPort: "PORT", AttrQKey: "QKEY",
	AttrAV: "AV", AttrPathMTU: "PATH_MTU", AttrTimeout: "TIMEOUT", AttrRetryCnt: "RETRY_CNT",
	AttrRNRRetry: "RNR_RETRY", AttrRQPSN: "RQ_PSN", AttrMaxRdAtomic: "MAX_QP_RD_ATOMIC",
	AttrAltPath: "ALT_PATH", AttrMinRNRTimer: "MIN_RNR_TIMER", AttrSQPSN: "SQ_PSN",
	AttrMaxDestRdAtomic: "MAX_DEST_RD_ATOMIC", AttrPathMigState: "PATH_MIG_STATE",
	AttrCap: "CAP", AttrDestQPN: "DEST_QPN", AttrRateLimit: "RATE_LIMIT",
	AttrExtensions: "EXTENSIONS",
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

// checkMove returns nil when the mask fits the edge, and else an error that
// names what is missing or too much.
func checkMove(t QPType, from, to State, mask AttrMask) error {
	m := moveOf(t, from, to)
	if !m.legal {
		return fmt.Errorf("%w: no move from %s to %s for %s", ErrState, from, to, t)
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

// receives reports whether a QP in this state takes packets.
func (s State) receives() bool { return s >= StateRTR && s <= StateSQE }

// sends reports whether a QP in this state has a running send queue.
func (s State) sends() bool { return s == StateRTS || s == StateSQD }

// takesSends reports whether a QP in this state takes work requests, if only to
// flush them.
func (s State) takesSends() bool { return s >= StateRTS }
