package verbs

import (
	"fmt"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// An AH is an address handle: where datagrams go. It does not change and is safe
// for concurrent use.
type AH struct {
	domain *mem.Domain
	path   wire.Path
	header wire.Template
}

// NewAH makes an address handle of a resolved path (ibv_create_ah). A path
// without a source port gets one from its flow label. One that leads to all stations of a
// network must name a group: the address that a peer tells of itself may be the broadcast
// address, and datagrams to the peer are not for everybody.
func NewAH(d *mem.Domain, path wire.Path) (*AH, error) {
	if d == nil {
		return nil, fmt.Errorf("%w: an address handle needs a protection domain", ErrInvalid)
	}
	if path.DstMAC[0]&1 != 0 && !path.Dst.IsMulticast() {
		return nil, fmt.Errorf("%w: %s at %x is no host, and no multicast group", ErrInvalid,
			path.Dst, path.DstMAC)
	}
	if path.SrcPort == 0 {
		path.SrcPort = wire.SourcePort(path.FlowLabel, 0, 0)
	}
	a := &AH{domain: d, path: path}
	if err := a.header.Init(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return a, nil
}

// Path returns the path.
func (a *AH) Path() wire.Path { return a.path }

// Domain returns the protection domain that the handle was made in.
func (a *AH) Domain() *mem.Domain { return a.domain }

// Template returns the headers of every datagram to the path. They are the handle's own
// and must not be changed.
func (a *AH) Template() *wire.Template { return &a.header }
