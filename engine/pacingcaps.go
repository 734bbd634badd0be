package engine

import (
	"math"

	"xroce/roce"
)

// PacingCaps says how requests can be held to a rate (struct ibv_packet_pacing_caps): the
// rates of Attr.RateLimit, in kbit/s of frames.
type PacingCaps struct {
	MinRate, MaxRate uint32
	// Types are the types of queue pairs, a bit each: 1 << roce.TypeRC and so on.
	Types uint32
}

// pacingCaps are those of every device. An XRC_RECV QP sends no requests.
var pacingCaps = PacingCaps{
	MinRate: 1, MaxRate: math.MaxUint32,
	Types: 1<<roce.TypeRC | 1<<roce.TypeUC | 1<<roce.TypeUD | 1<<roce.TypeXRCSend |
		1<<roce.TypeRawPacket,
}
