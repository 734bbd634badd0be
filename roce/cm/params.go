package cm

import (
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// A Path is where MADs and packets of a connection go, or came from.
type Path struct {
	Local, Remote wire.GID // Local is ours
	FlowLabel     uint32   // 20 bits
	TClass        uint8
	SL            uint8 // service level, 0 to 7: the priority of VLAN tags
	HopLimit      uint8
	PKeyIndex     uint16 // the partition: the index of its P_Key in our table
	// Via is where the frame of a MAD came from, and its answer goes back to. Its MAC is zero
	// for what is on its way to where its addresses lead.
	Via Via
}

// A Via is the next station on a link: the MAC address, and the VLAN. Who
// sent a frame may have written there what it liked, so the MAC address is a way for answers
// alone: a connection that is established has none. Its VLAN stays, because an address of
// ours may be on several.
type Via struct {
	MAC  [6]byte
	VLAN wire.VLAN
}

// QPParams are the attributes that connect a QP (IBA 12.9.6, table of QP
// attributes). A PSN that a message carries is the first that its sender expects,
// so each side begins to send with the number that it got.
type QPParams struct {
	Transport       Transport
	Path            Path
	PathMTU         wire.MTU
	DestQPN         uint32
	RQPSN           wire.PSN // ours, the one that we told
	SQPSN           wire.PSN // the one that the peer told
	MaxRdAtomic     uint8    // READs and atomics that we may have outstanding
	MaxDestRdAtomic uint8    // READs and atomics of the peer at once
	// Timeout is the local ACK timeout code: of ours and what the peer asks for, which makes it
	// at most 20, 4.3 s, where ours is not larger.
	Timeout     uint8
	RetryCnt    uint8
	RNRRetry    uint8
	MinRNRTimer uint8
	FlowControl bool // the peer counts credits
	SRQ         bool // the peer's QP has a shared receive queue
	// Extensions are those that the peer offers, of a CONNECT_REQUEST, or those that both
	// ends are to use.
	Extensions verbs.Extensions
}

// What moves a QP to the states in which it receives and sends, by what it does.
const (
	maskRTR = verbs.AttrState | verbs.AttrAV | verbs.AttrPathMTU | verbs.AttrDestQPN |
		verbs.AttrRQPSN | verbs.AttrPKeyIndex
	maskRTRResponder = verbs.AttrMaxDestRdAtomic | verbs.AttrMinRNRTimer
	maskRTS          = verbs.AttrState | verbs.AttrSQPSN
	maskRTSRequester = verbs.AttrTimeout | verbs.AttrRetryCnt | verbs.AttrRNRRetry |
		verbs.AttrMaxRdAtomic
)

// RTR returns what moves a QP of a type, RC, UC or one of XRC, from INIT to RTR; the path is
// Path, resolved.
func (p *QPParams) RTR(t verbs.QPType, path wire.Path) (*verbs.Attr, verbs.AttrMask) {
	a := &verbs.Attr{
		State: verbs.StateRTR, Path: path, PathMTU: p.PathMTU, DestQPN: p.DestQPN,
		RQPSN: p.RQPSN, MaxDestRdAtomic: min(p.MaxDestRdAtomic, verbs.MaxRdAtomic),
		PKeyIndex:   p.Path.PKeyIndex,
		MinRNRTimer: p.MinRNRTimer, NoFlowControl: !p.FlowControl, Extensions: p.Extensions,
	}
	switch t {
	case verbs.TypeUC:
		return a, maskRTR
	case verbs.TypeXRCSend:
		return a, maskRTR | verbs.AttrFlowControl
	case verbs.TypeXRCRecv:
		return a, maskRTR | maskRTRResponder
	}
	return a, maskRTR | maskRTRResponder | verbs.AttrFlowControl | verbs.AttrExtensions
}

// RTS returns what moves a QP of a type from RTR to RTS.
func (p *QPParams) RTS(t verbs.QPType) (*verbs.Attr, verbs.AttrMask) {
	a := &verbs.Attr{
		State: verbs.StateRTS, SQPSN: p.SQPSN, Timeout: p.Timeout, RetryCnt: p.RetryCnt,
		RNRRetry: p.RNRRetry, MaxRdAtomic: min(p.MaxRdAtomic, verbs.MaxRdAtomic),
	}
	switch t {
	case verbs.TypeUC:
		return a, maskRTS
	case verbs.TypeXRCRecv:
		return a, maskRTS | verbs.AttrTimeout
	}
	return a, maskRTS | maskRTSRequester
}
