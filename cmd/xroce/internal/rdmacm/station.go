package rdmacm

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
)

// A Station is the device and the connection manager of one end. Its methods may be
// used by several goroutines when Say may.
type Station struct {
	Dev     *engine.Device
	Manager *cm.Manager
	Log     *slog.Logger

	// Say is told each line that the original prints on standard output.
	Say func(format string, args ...any)
	// Listening, if not nil, is told where a server begins to listen.
	Listening func(netip.AddrPort)
	// Patience is how long a client waits for an answer, 0 for peer.ConnectTime.
	Patience time.Duration
	// Silence is how long a peer that was met may say nothing, 0 for two minutes: the
	// originals wait for ever.
	Silence time.Duration
	// Met, if not nil, is told when a server that ends with its client has met it.
	Met func()
}

// A Result is what a conversation came to.
type Result struct {
	Connections int // peers talked to
	Messages    int // rounds of Rping, else messages each way, of all connections
	// RoundTrip is what a client of Rping measured, nil when there was no round.
	RoundTrip *RoundTrip
}

// silence is how long a peer may be waited for.
const silence = 120 * time.Second

// patience returns a context that ends, with peer.ErrSilence as its cause, when the peer has
// been waited for long enough, and when ctx ends. stop must be called.
func (s *Station) patience(ctx context.Context) (_ context.Context, stop func()) {
	most := cmp.Or(s.Silence, silence)
	return context.WithTimeoutCause(ctx, most, fmt.Errorf("%w for %s", peer.ErrSilence, most))
}

// await waits for a completion, not for ever.
func (s *Station) await(ctx context.Context, cq *engine.CQ, wcs []roce.Completion) error {
	within, stop := s.patience(ctx)
	defer stop()
	_, err := cq.Wait(within, wcs)
	if err != nil && within.Err() != nil {
		return context.Cause(within)
	}
	return err
}

// anyAddress lists what a server listens at for an address: a wildcard stands for
// those of both families.
func anyAddress(at netip.AddrPort) []netip.AddrPort {
	if !at.Addr().IsUnspecified() {
		return []netip.AddrPort{at}
	}
	return []netip.AddrPort{
		netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()),
		netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()),
	}
}

// listening tells that a server is ready.
func (s *Station) listening(at netip.AddrPort) {
	s.Log.Info("listening", "address", at.String())
	if s.Listening != nil {
		s.Listening(at)
	}
}

// met tells that a client has come.
func (s *Station) met() {
	if s.Met != nil {
		s.Met()
	}
}
