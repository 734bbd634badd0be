package engine

import (
	"xroce/engine/pager"
	"xroce/roce"
)

// ODPGeneral says what on-demand paging there is (enum ibv_odp_general_caps).
type ODPGeneral uint64

// The bits of ODPGeneral.
const (
	ODPSupport  ODPGeneral = 1 << 0
	ODPImplicit ODPGeneral = 1 << 1
)

// ODPOps is a set of operations whose memory may be paged (enum
// ibv_odp_transport_cap_bits).
type ODPOps uint32

// The bits of ODPOps. Those of memory of the peer's choice are the responder's; READ has
// its result paged too.
const (
	ODPSend        ODPOps = 1 << 0
	ODPRecv        ODPOps = 1 << 1
	ODPWrite       ODPOps = 1 << 2
	ODPRead        ODPOps = 1 << 3
	ODPAtomic      ODPOps = 1 << 4
	ODPSRQRecv     ODPOps = 1 << 5
	ODPFlush       ODPOps = 1 << 6
	ODPAtomicWrite ODPOps = 1 << 7
)

// ODPCaps says what on-demand paging a device has (struct ibv_odp_caps).
type ODPCaps struct {
	General ODPGeneral `json:"general"`
	RC      ODPOps     `json:"rc"`
	UC      ODPOps     `json:"uc"`
	UD      ODPOps     `json:"ud"`
	XRC     ODPOps     `json:"xrc"`
}

// odpCaps are what the operating system allows, which is tried: the operations that each
// kind of queue pair has, since all of them page, or none.
func odpCaps() ODPCaps {
	if pager.Supported() != nil {
		return ODPCaps{}
	}
	return ODPCaps{
		General: ODPSupport | ODPImplicit,
		RC: ODPSend | ODPRecv | ODPWrite | ODPRead | ODPAtomic | ODPSRQRecv | ODPFlush |
			ODPAtomicWrite,
		UC:  ODPSend | ODPRecv | ODPWrite | ODPSRQRecv,
		UD:  ODPSend | ODPRecv | ODPSRQRecv,
		XRC: ODPSend | ODPWrite | ODPRead | ODPAtomic | ODPSRQRecv,
	}
}

// ODPCaps returns what on-demand paging the device has, nothing where the operating
// system does not allow it: pager.Supported says why.
func (d *Device) ODPCaps() ODPCaps { return odpCaps() }

// Of returns the operations of a type of queue pair, none of those that verbs has no bits
// for.
func (c *ODPCaps) Of(t roce.QPType) ODPOps {
	switch t {
	case roce.TypeRC:
		return c.RC
	case roce.TypeUC:
		return c.UC
	case roce.TypeUD:
		return c.UD
	case roce.TypeXRCSend, roce.TypeXRCRecv:
		return c.XRC
	}
	return 0
}
