package engine

import (
	"context"
	"fmt"
	"slices"

	"xroce/roce"
	"xroce/roce/wire"
)

// CreateAH makes an address handle: where datagrams of QPs of this domain go. The
// address may be a multicast group. The context bounds the resolution of the
// neighbour.
func (d *Device) CreateAH(ctx context.Context, pd *PD, av AddressVector) (*roce.AH, error) {
	if pd == nil || pd.device != d {
		return nil, fmt.Errorf("%w: the PD is not of this device", roce.ErrInvalid)
	}
	path, err := d.ResolvePath(ctx, av)
	if err != nil {
		return nil, err
	}
	return roce.NewAH(&pd.domain, path)
}

// ReplyVector says how to answer a datagram: grh is the first 40 bytes of its
// receive (ibv_init_ah_from_wc). The completion's SrcQP is the QP to answer to.
func (d *Device) ReplyVector(grh []byte) (AddressVector, error) {
	path, err := wire.ParseReplyGRH(grh)
	if err != nil {
		return AddressVector{}, err
	}
	// It came to one of our addresses, or to a group: then any of the family.
	gids := d.GIDs()
	index := slices.Index(gids, path.Dst)
	if index < 0 {
		index = slices.IndexFunc(gids, func(g wire.GID) bool {
			return g.IsIPv4() == path.Dst.IsIPv4()
		})
	}
	if index < 0 {
		return AddressVector{}, fmt.Errorf("%w: no GID of the family of %s", roce.ErrInvalid,
			path.Src)
	}
	return AddressVector{
		DGID: path.Src, SGIDIndex: index, TClass: path.TClass, HopLimit: 64,
		FlowLabel: path.FlowLabel,
	}, nil
}
