package roce_test

import (
	"xroce/roce"
	"xroce/roce/wire"
)

// A kind is a sort of queue pair that a peer can meet.
type kind struct {
	name string
	typ  roce.QPType
	ext  roce.Extensions
	srq  bool
	psn  *[2]wire.PSN // expected, and first to send; nil for the usual ones
	far  bool         // it is the other end of the connection
}

// kinds are all sorts of queue pairs.
var kinds = []kind{
	{"RC", roce.TypeRC, 0, false, nil, false},
	{"RC extended", roce.TypeRC, roce.ExtSelectiveRepeat, false, nil, false},
	{"RC reorder", roce.TypeRC, roce.ExtSelectiveRepeat | roce.ExtReorderWindow, false, nil, false},
	{"RC SRQ", roce.TypeRC, 0, true, nil, false},
	{"UC", roce.TypeUC, 0, false, nil, false},
	{"UC SRQ", roce.TypeUC, 0, true, nil, false},
	{"UD", roce.TypeUD, 0, false, nil, false},
	{"UD SRQ", roce.TypeUD, 0, true, nil, false},
	{"GSI", roce.TypeGSI, 0, false, nil, false},
	{"RAW_PACKET", roce.TypeRawPacket, 0, false, nil, false},
	{"XRC_SEND", roce.TypeXRCSend, 0, false, nil, false},
	{"XRC_RECV", roce.TypeXRCRecv, 0, true, nil, false},
}

// everyState is every state of a QP, those first that states has.
var everyState = append(append([]roce.State(nil), states...), roce.StateSQE)

// reaches reports whether a QP of a kind can be in a state.
func (k kind) reaches(s roce.State) bool {
	unreliable := k.typ != roce.TypeRC && k.typ != roce.TypeXRCSend && k.typ != roce.TypeXRCRecv
	switch s {
	case roce.StateSQE:
		return unreliable
	case roce.StateSQD:
		return k.typ != roce.TypeRawPacket
	}
	return true
}

// eachKind calls f for every sort of QP in every state that it can be in.
func eachKind(f func(k kind, state roce.State)) {
	for _, k := range kinds {
		for _, state := range everyState {
			if k.reaches(state) {
				f(k, state)
			}
		}
	}
}

// connected reports whether packets for such a QP must come from one address.
func (k kind) connected() bool {
	return k.typ != roce.TypeUD && k.typ != roce.TypeGSI && k.typ != roce.TypeRawPacket
}

// service is the transport service of its packets.
func (k kind) service() wire.Service {
	switch k.typ {
	case roce.TypeUC:
		return wire.ServiceUC
	case roce.TypeUD, roce.TypeGSI:
		return wire.ServiceUD
	case roce.TypeXRCSend, roce.TypeXRCRecv:
		return wire.ServiceXRC
	}
	return wire.ServiceRC
}

// qpn is the number of the QP of a stand: that of management for GSI.
func (k kind) qpn() uint32 {
	switch {
	case k.typ == roce.TypeGSI:
		return 1
	case k.far:
		return qpnB
	}
	return qpnA
}

// peer is the number of the QP that it is connected with.
func (k kind) peer() uint32 { return qpnA ^ qpnB ^ (kind{far: k.far}).qpn() }

// opcode is an opcode of RC in the service of the kind; ok is false when the
// service does not have it.
func (k kind) opcode(base wire.Opcode) (op wire.Opcode, ok bool) {
	return k.service().Opcode(base)
}

// moveMask is the mask of the move to a state for a type of QP.
func moveMask(k kind, to roce.State) roce.AttrMask {
	var m roce.AttrMask
	switch reliableIn := k.typ == roce.TypeRC || k.typ == roce.TypeXRCRecv; to {
	case roce.StateInit:
		m = roce.AttrPKeyIndex | roce.AttrPort | roce.AttrAccess
		switch k.typ {
		case roce.TypeUD:
			m = roce.AttrPKeyIndex | roce.AttrPort | roce.AttrQKey
		case roce.TypeGSI:
			m = roce.AttrPKeyIndex | roce.AttrQKey
		case roce.TypeRawPacket:
			m = roce.AttrPort
		}
	case roce.StateRTR:
		if k.connected() {
			m = roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN | roce.AttrRQPSN
		}
		if reliableIn {
			m |= roce.AttrMaxDestRdAtomic | roce.AttrMinRNRTimer
		}
		if k.ext != 0 {
			m |= roce.AttrExtensions
		}
	case roce.StateRTS:
		if k.typ != roce.TypeRawPacket {
			m = roce.AttrSQPSN
		}
		switch k.typ {
		case roce.TypeRC, roce.TypeXRCSend:
			m |= roce.AttrTimeout | roce.AttrRetryCnt | roce.AttrRNRRetry | roce.AttrMaxRdAtomic
		case roce.TypeXRCRecv:
			m |= roce.AttrTimeout
		}
	}
	return m | roce.AttrState
}
