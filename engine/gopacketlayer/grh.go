package gopacketlayer

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/wire"
)

// GRH is the global route header of RoCE v1 as a gopacket layer.
type GRH struct {
	layers.BaseLayer
	wire.GRH
}

// LayerType is LayerTypeGRH.
func (*GRH) LayerType() gopacket.LayerType { return LayerTypeGRH }

// decodeGRH decodes a GRH and goes on with the BTH. Bytes behind the packet are
// cut off.
func decodeGRH(data []byte, p gopacket.PacketBuilder) error {
	h, err := wire.ParseGRH(data)
	if err != nil {
		p.SetTruncated()
		return err
	}
	payload := data[wire.GRHLen:]
	if int(h.PayLen) > len(payload) {
		p.SetTruncated()
		return wire.Truncated.Err()
	}
	p.AddLayer(&GRH{
		BaseLayer: layers.BaseLayer{
			Contents: data[:wire.GRHLen],
			Payload:  payload[:h.PayLen],
		},
		GRH: h,
	})
	if h.NxtHdr != wire.GRHNxtHdrIBA {
		return p.NextDecoder(gopacket.LayerTypePayload)
	}
	return p.NextDecoder(LayerTypeBTH)
}
