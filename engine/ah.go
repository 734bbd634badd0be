package engine

import (
	"context"
	"fmt"

	"xroce/engine/host"
	"xroce/roce"
	"xroce/roce/wire"
)

// defaultHopLimit is that of datagrams whose address vector says none.
const defaultHopLimit = 64

// CreateAH makes an address handle (ibv_create_ah): where datagrams of QPs of
// this domain go. The address may be a multicast group, which is sent to as
// roce.SendWR.RemoteQPN wire.MulticastQP. A hop limit of 0 is 64; multicast
// beyond the own network needs routers that know the group. The context bounds
// the resolution of the neighbour; the error is ErrNoNeighbour when no host
// answers. A handle does not change, not even with the neighbour's MAC address, as
// with adapters, and the garbage collector destroys it.
func (d *Device) CreateAH(ctx context.Context, pd *PD, av AddressVector) (*roce.AH, error) {
	if err := pd.check(d); err != nil {
		return nil, err
	}
	if av.HopLimit == 0 {
		av.HopLimit = defaultHopLimit
	}
	path, err := d.ResolvePath(ctx, av)
	if err != nil {
		return nil, err
	}
	return pd.NewAH(path)
}

// NewAH makes an address handle of a path that is resolved, see ResolvePath and PathVia.
func (p *PD) NewAH(path wire.Path) (*roce.AH, error) {
	if err := p.check(p.device); err != nil {
		return nil, err
	}
	if path.Framing == wire.FramingV1 {
		if err := p.device.wantV1Always(); err != nil {
			return nil, err
		}
	}
	return roce.NewAH(&p.core, path)
}

// ReplyVector says how to answer a datagram (ibv_init_ah_from_wc): grh is the
// first 40 bytes of its receive. The completion's SrcQP is the QP to answer to. A
// datagram to a multicast group is answered from an address of the device. It
// returns wire.ErrShort or wire.ErrGRH when grh is no such thing, roce.ErrInvalid when
// the datagram says that it comes from a group: an answer would go to all of that.
func (d *Device) ReplyVector(grh []byte) (AddressVector, error) {
	path, err := wire.ParseReplyGRH(grh)
	if err != nil {
		return AddressVector{}, err
	}
	if path.Src.IsMulticast() {
		return AddressVector{}, fmt.Errorf("%w: nobody is %s, which is a group", roce.ErrInvalid,
			path.Src)
	}
	from, ok := d.replyFrom(path)
	if !ok {
		return AddressVector{}, fmt.Errorf("%w: no GID to answer %s from", roce.ErrInvalid,
			path.Src)
	}
	return AddressVector{
		DGID: path.Src, SGIDIndex: from.Index, TClass: path.TClass, HopLimit: defaultHopLimit,
		FlowLabel: path.FlowLabel,
	}, nil
}

// replyFrom chooses the GID from which to answer: the one that the datagram came
// to, else the first of the same family and scope, of the type of its framing. The
// VLAN is not in what came; of an address on several it is the first.
func (d *Device) replyFrom(came wire.Path) (host.GIDEntry, bool) {
	ty := host.GIDRoCEv2
	if came.Framing == wire.FramingV1 {
		ty = host.GIDRoCEv1
	}
	if e, ok := d.gids.Find(ty, func(e host.GIDEntry) bool { return e.GID == came.Dst }); ok {
		return e, true
	}
	return d.gids.Find(ty, func(e host.GIDEntry) bool {
		g := e.GID
		return g.IsIPv4() == came.Src.IsIPv4() && g.IsLinkLocal() == came.Src.IsLinkLocal()
	})
}
