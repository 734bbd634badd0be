package rdmacm

import (
	"cmp"
	"context"
	"net/netip"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
)

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
) (found *cm.Peer, err error) {
	err = s.patiently(ctx, to, func(ctx context.Context) (err error) {
		found, err = s.Manager.Lookup(ctx, pd, to, nil)
		return err
	})
	return found, err
}

// patiently asks a peer, but not for ever.
func (s *Station) patiently(
	ctx context.Context, to netip.AddrPort, ask func(context.Context) error,
) error {
	return peer.Ask(ctx, to, cmp.Or(s.Patience, peer.ConnectTime), ask)
}
