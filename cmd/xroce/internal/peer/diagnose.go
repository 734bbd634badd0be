package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// diagnoseTime is how long a peer is asked whether it answers a small packet.
const diagnoseTime = 2 * time.Second

// Diagnose adds to the error of a work request that the peer did not acknowledge whether it
// answers small packets: then the large ones alone were lost, as in front of a switch whose MTU
// is smaller. It asks as a keepalive does, with a WRITE of no bytes and a PSN one too old, which
// every responder acknowledges and none executes, from the queue pair of qps that failed: that is
// of no use any more then. Other errors are returned as they are. Completions of cq are lost.
func Diagnose(ctx context.Context, cq *engine.CQ, err error, qps ...*engine.QP) error {
	var failed *roce.WorkError
	if !errors.As(err, &failed) || failed.Status != roce.StatusRetryExcErr {
		return err
	}
	for _, qp := range qps {
		mtu := qp.Query().PathMTU
		if qp.QPN() != failed.QPN || qp.Type() != roce.TypeRC || mtu <= wire.MTU256 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
		defer cancel()
		if answersSmall(ctx, cq, qp) {
			return fmt.Errorf("%w; but it answers small packets, so large ones alone were lost: "+
				"the path MTU of %d is too large for something in between: try -m 1024, and "+
				"'xroce check IFACE HOST' finds what passes", err, mtu.Bytes())
		}
	}
	return err
}

// answersSmall reports whether the peer of a queue pair in ERR answers a packet without a
// payload.
func answersSmall(ctx context.Context, cq *engine.CQ, qp *engine.QP) bool {
	was, at := qp.Query(), qp.Snapshot().UnackedPSN
	if qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState) != nil ||
		qp.Init(0) != nil {
		return false
	}
	err := qp.Modify(&roce.Attr{
		State: roce.StateRTR, Path: was.Path, PathMTU: was.PathMTU, DestQPN: was.DestQPN,
		RQPSN: was.RQPSN, MinRNRTimer: was.MinRNRTimer, Extensions: was.Extensions,
	}, roce.AttrState|roce.AttrAV|roce.AttrPathMTU|roce.AttrDestQPN|roce.AttrRQPSN|
		roce.AttrMaxDestRdAtomic|roce.AttrMinRNRTimer|roce.AttrExtensions)
	if err != nil {
		return false
	}
	const timeout, retries = 14, 7 // 67 ms, eight times
	err = qp.Modify(&roce.Attr{
		State: roce.StateRTS, SQPSN: at.Sub(1), Timeout: timeout, RetryCnt: retries,
		RNRRetry: retries,
	}, roce.AttrState|roce.AttrSQPSN|roce.AttrTimeout|roce.AttrRetryCnt|roce.AttrRNRRetry|
		roce.AttrMaxRdAtomic)
	if err != nil {
		return false
	}
	const probe = 1<<64 - 1
	wr := roce.SendWR{WRID: probe, Opcode: roce.OpWrite, Flags: roce.SendSignaled}
	if qp.PostSend(&wr) != nil {
		return false
	}
	for {
		var wcs [16]roce.Completion
		n, err := cq.Wait(ctx, wcs[:])
		if err != nil {
			return false
		}
		for _, wc := range wcs[:n] {
			if wc.QPN == qp.QPN() && wc.WRID == probe {
				return wc.Status != roce.StatusRetryExcErr && wc.Status != roce.StatusWRFlushErr
			}
		}
	}
}
