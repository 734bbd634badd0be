package roce

// A move is one edge of the state graph: the attributes that it must and that
// it may set beside the state itself.
type move struct {
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

// moveRows is the state graph (IBA 11.2.5.2, kernel
// drivers/infiniband/core/verbs.c qp_state_table), without path migration. A
// row adds to what the rows above it say of the same edge. Every state may also
// go to RESET and to ERR, with no attribute; see moveOf.
var moveRows = []struct {
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
	{StateInit, StateRTR, rcTypes, 0, AttrExtensions},

	{
		StateRTR, StateRTS, rcTypes | xsTypes,
		attrRetry | AttrSQPSN | AttrMaxRdAtomic, AttrCurState | AttrAccess,
	},
	{StateRTR, StateRTS, xrTypes, AttrTimeout | AttrSQPSN, AttrCurState | AttrAccess},
	{StateRTR, StateRTS, rcTypes | xrTypes, 0, AttrMinRNRTimer},
	{StateRTR, StateRTS, ucTypes, AttrSQPSN, AttrCurState | AttrAccess},
	{StateRTR, StateRTS, udTypes, AttrSQPSN, AttrCurState | AttrQKey},
	{StateRTR, StateRTS, allTypes &^ xrTypes, 0, AttrRateLimit},

	{StateRTS, StateRTS, rcTypes | xrTypes, 0, AttrMinRNRTimer},
	{StateRTS, StateRTS, rcTypes | ucTypes | xsTypes | xrTypes, 0, AttrCurState | AttrAccess},
	{StateRTS, StateRTS, udTypes, 0, AttrCurState | AttrQKey},
	{StateRTS, StateRTS, allTypes &^ xrTypes, 0, AttrRateLimit},

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

// moves is moveRows by type and edge.
var moves = buildMoves()

func buildMoves() (t [typeCount][stateCount][stateCount]move) {
	for _, row := range moveRows {
		for typ := range QPType(typeCount) {
			if row.types&(1<<typ) != 0 {
				m := &t[typ][row.from][row.to]
				m.legal = true
				m.required |= row.required
				m.optional |= row.optional
			}
		}
	}
	return t
}

// moveOf returns the edge between two states of a QP of a type.
func moveOf(t QPType, from, to State) move {
	if to == StateReset || to == StateErr {
		return move{legal: true}
	}
	return moves[t][from][to]
}
