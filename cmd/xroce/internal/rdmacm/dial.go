package rdmacm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	machine "xroce/roce/cm"
)

// ConnectTime is how long a client waits for an answer. The retries of rdma_cm take more
// than a minute, in which a user who mistyped an address sees nothing.
const ConnectTime = 15 * time.Second

// dial is Manager.Dial within Patience, with an error that says what may be wrong.
func (s *Station) dial(
	ctx context.Context, to netip.AddrPort, setup cm.Setup,
) (conn *cm.Conn, err error) {
	err = s.patiently(ctx, to, func(ctx context.Context) (err error) {
		conn, err = s.Manager.Dial(ctx, to, setup)
		return err
	})
	return conn, err
}

// lookup is Manager.Lookup in the same way.
func (s *Station) lookup(
	ctx context.Context, pd *engine.PD, to netip.AddrPort,
) (peer *cm.Peer, err error) {
	err = s.patiently(ctx, to, func(ctx context.Context) (err error) {
		peer, err = s.Manager.Lookup(ctx, pd, to, nil)
		return err
	})
	return peer, err
}

// patiently asks a peer, but not for ever.
func (s *Station) patiently(
	ctx context.Context, to netip.AddrPort, ask func(context.Context) error,
) error {
	patience := cmp.Or(s.Patience, ConnectTime)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := ask(limited)
	var refused *cm.RejectedError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("connect to %s: %w within %v: is that the address of the server, does "+
			"it run, and do UDP packets to port 4791 get there?", to, cm.ErrTimeout, patience)
	case errors.As(err, &refused) && (refused.Reason == machine.ReasonInvalidServiceID ||
		refused.Status == machine.SIDRUnsupported):
		return fmt.Errorf("connect to %s: %w: nobody listens there; start the server first",
			to, err)
	}
	return fmt.Errorf("connect to %s: %w", to, err)
}
