package gopacketlayer

import (
	"encoding/binary"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/wire"
)

// BTH is the base transport header as a gopacket layer, with what lies behind
// the payload.
type BTH struct {
	layers.BaseLayer
	wire.BTH
	Spec *wire.OpcodeSpec // what the opcode means
	Pad  []byte           // padding behind the payload
	ICRC uint32           // invariant CRC as carried, not checked
}

// LayerType is LayerTypeBTH.
func (*BTH) LayerType() gopacket.LayerType { return LayerTypeBTH }

// String prints the header with tshark's names.
func (b *BTH) String() string { return b.BTH.String() }

// decodeBTH decodes the transport packet: BTH, extended headers, payload.
func decodeBTH(data []byte, p gopacket.PacketBuilder) error {
	h, err := wire.ParseBTH(data)
	if err != nil {
		p.SetTruncated()
		return err
	}
	spec := h.Opcode.Spec()
	if !spec.Known {
		return wire.UnknownOpcode.Err()
	}
	start := wire.BTHLen + int(spec.HeaderLen)
	icrc := len(data) - wire.ICRCLen
	if icrc < start {
		return wire.BadLength.Err()
	}
	end := icrc - int(h.PadCnt)
	if end < start {
		return wire.BadPad.Err()
	}
	p.AddLayer(&BTH{
		BaseLayer: layers.BaseLayer{Contents: data[:wire.BTHLen], Payload: data[wire.BTHLen:end]},
		BTH:       h,
		Spec:      spec,
		Pad:       data[end:icrc],
		ICRC:      binary.LittleEndian.Uint32(data[icrc:]),
	})
	for h := range wire.Header(wire.NumHeaders) {
		if off := int(spec.Offsets[h]); off != 0 {
			if err := addExtended(p, h, data[off:end]); err != nil {
				return err
			}
		}
	}
	return p.NextDecoder(gopacket.LayerTypePayload)
}
