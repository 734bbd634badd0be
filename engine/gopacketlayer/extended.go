package gopacketlayer

import (
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/wire"
)

// Extended is an extended transport header as a gopacket layer. Its instances
// have names: RETH, AETH and so on.
type Extended[H fmt.Stringer] struct {
	layers.BaseLayer
	Header H
	typ    gopacket.LayerType
}

// The layers of the extended headers.
type (
	RDETH        = Extended[wire.RDETH]
	XRCETH       = Extended[wire.XRCETH]
	DETH         = Extended[wire.DETH]
	FETH         = Extended[wire.FETH]
	RETH         = Extended[wire.RETH]
	AtomicETH    = Extended[wire.AtomicETH]
	AETH         = Extended[wire.AETH]
	AtomicAckETH = Extended[wire.AtomicAckETH]
	ImmDt        = Extended[wire.ImmDt]
	IETH         = Extended[wire.IETH]
)

// LayerType is the layer type of the header.
func (e *Extended[H]) LayerType() gopacket.LayerType { return e.typ }

// String prints the header with tshark's names.
func (e *Extended[H]) String() string { return e.Header.String() }

// addExtended decodes header h at the start of data and adds its layer.
func addExtended(p gopacket.PacketBuilder, h wire.Header, data []byte) error {
	switch h {
	case wire.HeaderRDETH:
		return add(p, h, LayerTypeRDETH, data, wire.ParseRDETH)
	case wire.HeaderXRCETH:
		return add(p, h, LayerTypeXRCETH, data, wire.ParseXRCETH)
	case wire.HeaderDETH:
		return add(p, h, LayerTypeDETH, data, wire.ParseDETH)
	case wire.HeaderFETH:
		return add(p, h, LayerTypeFETH, data, wire.ParseFETH)
	case wire.HeaderRETH:
		return add(p, h, LayerTypeRETH, data, wire.ParseRETH)
	case wire.HeaderAtomicETH:
		return add(p, h, LayerTypeAtomicETH, data, wire.ParseAtomicETH)
	case wire.HeaderAETH:
		return add(p, h, LayerTypeAETH, data, wire.ParseAETH)
	case wire.HeaderAtomicAckETH:
		return add(p, h, LayerTypeAtomicAckETH, data, wire.ParseAtomicAckETH)
	case wire.HeaderImmDt:
		return add(p, h, LayerTypeImmDt, data, wire.ParseImmDt)
	case wire.HeaderIETH:
		return add(p, h, LayerTypeIETH, data, wire.ParseIETH)
	case wire.HeaderAPSN:
		return add(p, h, LayerTypeAPSN, data, wire.ParseAPSN)
	default:
		return fmt.Errorf("gopacketlayer: no layer for %s", h)
	}
}

func add[H fmt.Stringer](p gopacket.PacketBuilder, h wire.Header, typ gopacket.LayerType,
	data []byte, parse func([]byte) (H, error),
) error {
	header, err := parse(data)
	if err != nil {
		return err
	}
	n := h.Len()
	p.AddLayer(&Extended[H]{
		BaseLayer: layers.BaseLayer{Contents: data[:n], Payload: data[n:]},
		Header:    header,
		typ:       typ,
	})
	return nil
}
