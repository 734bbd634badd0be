package engine

import (
	"context"
	"fmt"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// An Endpoint is what a peer must be told to connect to a QP.
type Endpoint struct {
	QPN uint32   // 24 bits
	PSN wire.PSN // the first PSN that this end sends
	GID wire.GID // the address

	// Extensions are those that this end offers. Connect uses what both do;
	// a foreign peer offers none.
	Extensions roce.Extensions
}

// ConnectOptions are the attributes of a connection, with the defaults of
// ibv_rc_pingpong where they are zero.
type ConnectOptions struct {
	SGIDIndex   int      // our GID, by its index in Device.GIDTable
	PathMTU     wire.MTU // default: the device's active MTU
	SL          uint8    // service level, 0 to 7: the priority (PCP) of VLAN tags
	TClass      uint8    // traffic class: DSCP and ECN
	HopLimit    uint8    // default 64
	FlowLabel   uint32   // 20 bits, 0 lets the QP numbers choose the path
	Timeout     uint8    // default 14: 67 ms
	RetryCnt    uint8    // default 7
	RNRRetry    uint8    // default 7: for ever
	MinRNRTimer uint8    // default 12: 0.64 ms
	MaxRdAtomic uint8    // READs and atomics outstanding each way, default 16
	RateLimit   uint32   // of what we send, kbit/s of frames, 0 for none
	Exact       bool     // take zeros as they are
}

func (o *ConnectOptions) setDefaults(d *Device) {
	if o.PathMTU == 0 {
		o.PathMTU = d.ActiveMTU()
	}
	if o.Exact {
		return
	}
	for _, f := range []struct {
		field *uint8
		value uint8
	}{
		{&o.HopLimit, 64},
		{&o.Timeout, 14},
		{&o.RetryCnt, 7},
		{&o.RNRRetry, 7},
		{&o.MinRNRTimer, 12},
		{&o.MaxRdAtomic, 16},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
}

// Connect brings a QP of type RC, UC or XRC in INIT to RTS, connected to a remote
// QP; local is what the peer was told. The peer may send before this end is in
// RTS, so receives are best posted before. The context bounds the resolution of
// the neighbour; the error is ErrNoNeighbour when no host answers, else that of
// Modify. The QP then is in INIT or RTR, and Modify to RESET begins anew.
func (q *QP) Connect(ctx context.Context, local, remote Endpoint, o ConnectOptions) error {
	o.setDefaults(q.device())
	path, err := q.device().ResolvePath(ctx, AddressVector{
		DGID: remote.GID, SGIDIndex: o.SGIDIndex, SL: o.SL, TClass: o.TClass,
		HopLimit: o.HopLimit, FlowLabel: o.FlowLabel,
	})
	if err != nil {
		return err
	}
	rtr := roce.AttrState | roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN | roce.AttrRQPSN
	rts := roce.AttrState | roce.AttrSQPSN
	requester := roce.AttrTimeout | roce.AttrRetryCnt | roce.AttrRNRRetry | roce.AttrMaxRdAtomic
	responder := roce.AttrMaxDestRdAtomic | roce.AttrMinRNRTimer
	switch q.Type() {
	case roce.TypeRC:
		rtr |= responder | roce.AttrExtensions
		rts |= requester
	case roce.TypeXRCRecv:
		rtr |= responder
		rts |= roce.AttrTimeout
	case roce.TypeXRCSend:
		rts |= requester
	}
	if o.RateLimit != 0 {
		rts |= roce.AttrRateLimit
	}
	err = q.Modify(&roce.Attr{
		State: roce.StateRTR, Path: path, PathMTU: o.PathMTU, DestQPN: remote.QPN,
		RQPSN: remote.PSN, MaxDestRdAtomic: o.MaxRdAtomic, MinRNRTimer: o.MinRNRTimer,
		Extensions: local.Extensions & remote.Extensions,
	}, rtr)
	if err != nil {
		return err
	}
	return q.Modify(&roce.Attr{
		State: roce.StateRTS, SQPSN: local.PSN, Timeout: o.Timeout, RetryCnt: o.RetryCnt,
		RNRRetry: o.RNRRetry, MaxRdAtomic: o.MaxRdAtomic, RateLimit: o.RateLimit,
	}, rts)
}

// Init brings a QP from RESET to INIT, where it takes receives; the access rights
// are those that a connection grants its peer. Connect is next. QPs of type UD do
// both at once, by Start.
func (q *QP) Init(access mem.Access) error {
	mask := roce.AttrState | roce.AttrPKeyIndex | roce.AttrPort
	switch q.Type() {
	case roce.TypeUD:
		return fmt.Errorf("%w: a QP of type UD is made ready by Start", roce.ErrInvalid)
	case roce.TypeRawPacket:
		mask &^= roce.AttrPKeyIndex
	default:
		mask |= roce.AttrAccess
	}
	return q.Modify(&roce.Attr{
		State: roce.StateInit, Port: 1, Access: access, PKeyIndex: q.pkeyIndex,
	}, mask)
}

// Start brings a QP of type UD or RAW_PACKET, or the QP number 1, from RESET to RTS.
// Datagrams to a UD QP must carry its Q_Key, others are dropped and counted as
// drop_bad_qkey; a raw QP has none, and that of QP 1 is roce.GSIQKey in any case.
// Receives are posted afterwards, or in INIT by an application that needs them earlier and
// moves the QP by Modify.
func (q *QP) Start(qkey uint32) error {
	psn := q.device().RandomPSN()
	first := roce.AttrState | roce.AttrPKeyIndex | roce.AttrPort | roce.AttrQKey
	last := roce.AttrState | roce.AttrSQPSN
	switch q.Type() {
	case roce.TypeUD:
	case roce.TypeGSI:
		first &^= roce.AttrPort
	case roce.TypeRawPacket:
		first, last = roce.AttrState|roce.AttrPort, roce.AttrState
	default:
		return fmt.Errorf("%w: a QP of type %s must be connected", roce.ErrInvalid, q.Type())
	}
	for _, m := range []struct {
		state roce.State
		mask  roce.AttrMask
	}{
		{roce.StateInit, first}, {roce.StateRTR, roce.AttrState}, {roce.StateRTS, last},
	} {
		err := q.Modify(&roce.Attr{
			State: m.state, Port: 1, QKey: qkey, SQPSN: psn, PKeyIndex: q.pkeyIndex,
		}, m.mask)
		if err != nil {
			return err
		}
	}
	return nil
}

// Endpoint makes what the peer must be told of a QP that it is to connect to: its
// number, a random first PSN, the GID with this index in GIDTable, and the
// extensions of QPInit.
func (d *Device) Endpoint(qp *QP, gidIndex int) (Endpoint, error) {
	e, err := d.gids.At(gidIndex)
	if err != nil {
		return Endpoint{}, err
	}
	return Endpoint{
		QPN: qp.QPN(), PSN: d.RandomPSN(), GID: e.GID, Extensions: qp.extensions,
	}, nil
}
