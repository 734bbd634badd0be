package gopacketlayer

import (
	"sync"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/wire"
)

// firstLayerType is where our numbers start; gopacket leaves 2000 and above to
// other packages.
const firstLayerType = 479100

// The layer types.
var (
	LayerTypeGRH = layerType(0, "GRH", decodeGRH)
	LayerTypeBTH = layerType(1, "BTH", decodeBTH)

	LayerTypeRDETH        = extendedType(wire.HeaderRDETH)
	LayerTypeXRCETH       = extendedType(wire.HeaderXRCETH)
	LayerTypeDETH         = extendedType(wire.HeaderDETH)
	LayerTypeFETH         = extendedType(wire.HeaderFETH)
	LayerTypeRETH         = extendedType(wire.HeaderRETH)
	LayerTypeAtomicETH    = extendedType(wire.HeaderAtomicETH)
	LayerTypeAETH         = extendedType(wire.HeaderAETH)
	LayerTypeAtomicAckETH = extendedType(wire.HeaderAtomicAckETH)
	LayerTypeImmDt        = extendedType(wire.HeaderImmDt)
	LayerTypeIETH         = extendedType(wire.HeaderIETH)
	LayerTypeAPSN         = extendedType(wire.HeaderAPSN)
)

func layerType(n int, name string, decode gopacket.DecodeFunc) gopacket.LayerType {
	meta := gopacket.LayerTypeMetadata{Name: name, Decoder: decode}
	return gopacket.RegisterLayerType(firstLayerType+n, meta)
}

// extendedType registers the layer of an extended header. It has no decoder of
// its own: only the BTH before it knows that it is there.
func extendedType(h wire.Header) gopacket.LayerType {
	meta := gopacket.LayerTypeMetadata{Name: h.String(), Decoder: gopacket.DecodeUnknown}
	return gopacket.RegisterLayerType(firstLayerType+2+int(h), meta)
}

// Register makes gopacket decode UDP port 4791 as BTH and EtherType 0x8915 as
// GRH. It changes tables of gopacket for the whole process: call it before the
// first packet is decoded. Calling it again does nothing.
func Register() { register() }

var register = sync.OnceFunc(func() {
	layers.RegisterUDPPortLayerType(wire.UDPPort, LayerTypeBTH)
	layers.EthernetTypeMetadata[wire.EtherTypeV1] = layers.EnumMetadata{
		DecodeWith: LayerTypeGRH,
		Name:       "RoCEv1",
		LayerType:  LayerTypeGRH,
	}
})
