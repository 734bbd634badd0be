package perf

import (
	"context"
	"fmt"

	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/roce"
	"xroce/roce/wire"
)

// A Connector is how the ends of a test tell each other what they must know, and
// how their queue pairs get connected. Socket is the one over TCP, Managed that over
// rdma_cm. The steps of the exchange are those of perftest.Conn.
type Connector interface {
	// Versions tells what this end speaks, and whether it tells its plan, and returns
	// what the peer does and whether both tell their plans.
	Versions(local perftest.Version, plans bool) (perftest.Version, bool, error)
	// System tells about this machine and returns what both ends use.
	System(local perftest.System) (perftest.System, error)
	// MTU tells the largest path MTU here and returns that which both ends use.
	MTU(local wire.MTU) (wire.MTU, error)
	// Plan tells what this end is about to do and returns what the peer is.
	Plan(local string) (string, error)
	// Keys tells of a queue pair and returns one of the peer. It is a barrier.
	Keys(local perftest.Endpoint) (perftest.Endpoint, error)
	// Reports tells a result and returns that of the peer.
	Reports(local perftest.Report) (perftest.Report, error)
	// Done takes leave.
	Done() error

	// Connect brings a queue pair of type RC or UC from INIT to RTS.
	Connect(ctx context.Context, l Link) error

	// Interrupt ends the step that is waited for and all that come after it with an
	// error. It may be called at any time and by anybody.
	Interrupt(err error)

	// Watch begins to listen for the peer while nothing is said, and calls gone
	// when it hangs up. The next step of the exchange ends it. Heard reports whether
	// the peer has said something meanwhile.
	Watch(gone func(error))
	Heard() bool
}

// A Link is a queue pair to be connected.
type Link struct {
	QP            *engine.QP
	Local, Remote perftest.Endpoint
	Vector        engine.AddressVector
	MTU           wire.MTU
	Timeout       uint8  // local ACK timeout, 4.096 us * 2^Timeout
	RateLimit     uint32 // kbit/s of frames, 0 for none
}

// Attributes of every connection, those of the tool.
const (
	rnrRetry    = 7 // for ever
	minRNRTimer = 12
)

// connect brings the QP of a link to RTS with what the ends have told each other.
func connect(ctx context.Context, dev *engine.Device, l Link) error {
	path, err := dev.ResolvePath(ctx, l.Vector)
	if err != nil {
		return err
	}
	rtr := roce.AttrState | roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN | roce.AttrRQPSN
	rts := roce.AttrState | roce.AttrSQPSN
	if l.QP.Type() == roce.TypeRC {
		rtr |= roce.AttrMaxDestRdAtomic | roce.AttrMinRNRTimer
		rts |= roce.AttrTimeout | roce.AttrRetryCnt | roce.AttrRNRRetry | roce.AttrMaxRdAtomic
	}
	if l.RateLimit != 0 {
		rts |= roce.AttrRateLimit
	}
	err = l.QP.Modify(&roce.Attr{
		State: roce.StateRTR, Path: path, PathMTU: l.MTU, DestQPN: l.Remote.QPN,
		RQPSN: l.Remote.PSN, MaxDestRdAtomic: uint8(l.Local.OutReads), MinRNRTimer: minRNRTimer,
	}, rtr)
	if err != nil {
		return fmt.Errorf("QP 0x%06x: %w", l.QP.QPN(), err)
	}
	return l.QP.Modify(&roce.Attr{
		State: roce.StateRTS, SQPSN: l.Local.PSN, Timeout: l.Timeout, RetryCnt: DefaultRetryCount,
		RNRRetry: rnrRetry, RateLimit: l.RateLimit,
		MaxRdAtomic: uint8(min(l.Local.OutReads, l.Remote.OutReads, roce.MaxRdAtomic)),
	}, rts)
}
