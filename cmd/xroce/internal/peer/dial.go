package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"xroce/engine/cm"
	machine "xroce/roce/cm"
)

// ConnectTime is how long a client of rdma_cm waits for an answer. The retries of rdma_cm
// take more than a minute, in which a user who mistyped an address sees nothing.
const ConnectTime = 15 * time.Second

// Ask asks a server of rdma_cm, by a call that a context ends, for so long at most, or longer
// where the context was stretched. The error says what may be wrong; it wraps cm.ErrTimeout where
// nobody answered.
func Ask(
	ctx context.Context, to netip.AddrPort, patience time.Duration,
	ask func(context.Context) error,
) error {
	patience = Stretched(ctx, patience)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := ask(limited)
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // the address is in what is said below
	}
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
