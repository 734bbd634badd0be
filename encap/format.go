package encap

import (
	"fmt"
	"slices"
	"strings"

	"xroce/roce/wire"
)

// Format is a way to carry datagrams.
type Format uint8

// The formats.
const (
	Raw            Format = iota // raw packet with an EtherType (LNH 0)
	RawIPv6                      // raw IPv6 packet (LNH 1)
	RawGRH                       // raw packet behind a GRH (LNH 3)
	EoIB                         // Ethernet over InfiniBand
	IPoIB                        // IP over InfiniBand, datagram mode
	IPoIBConnected               // IP over InfiniBand, connected mode
	VNIC                         // port of a virtual switch

	numFormats = int(iota)
)

// Carrier is what a format travels in.
type Carrier uint8

// The carriers.
const (
	// Native is the link layer of InfiniBand, on Ethernet under EtherTypeNative.
	Native Carrier = 1 << iota
	// Datagrams are the payloads of UD.
	Datagrams
	// Connections are the messages of RC or UC.
	Connections
)

// String lists the carriers.
func (c Carrier) String() string {
	s := ""
	for i, name := range [...]string{"native", "UD", "RC, UC"} {
		if c>>i&1 != 0 {
			if s != "" {
				s += ", "
			}
			s += name
		}
	}
	return s
}

// EtherTypes of ours: those of IEEE 802 for local experiments.
const (
	// EtherTypeNative is that of Ethernet frames that hold a native packet.
	EtherTypeNative = 0x88B5
	// EtherTypeSegment is that of raw packets that hold a segment of a frame.
	EtherTypeSegment = 0x88B6
)

// Codes that say what kind a datagram is.
const (
	etherTypeIPv4   = 0x0800
	etherTypeARP    = 0x0806
	etherTypeTEB    = 0x6558 // transparent Ethernet bridging
	etherTypeRARP   = 0x8035
	etherTypeIPv6   = 0x86DD
	protocolIPv4    = 4
	protocolIPv6    = 41
	protocolEther   = 143
	protocolUDP     = 17
	etherTypeVLAN   = 0x8100
	etherTypeQinQ   = 0x88A8
	etherTypeRoCEv1 = wire.EtherTypeV1
)

// Lengths in bytes.
const (
	// VNICLen is the length of the header of a virtual switch.
	VNICLen = 8
	// IPoIBLen is the length of the header of IP over InfiniBand.
	IPoIBLen = 4
	// MaxNative is the length of the longest native packet.
	MaxNative = 4*maxWords + wire.VCRCLen

	// maxFrame is the longest frame that is sent in segments: 9,216 bytes behind an
	// Ethernet header with two VLAN tags.
	maxFrame = 9216 + 14 + 8
	// maxWords is the most that PktLen of the LRH can say.
	maxWords = 1<<11 - 1
	// maxUD is the largest payload of UD.
	maxUD = 4096
	// maxGSO is the longest frame that Linux hands over: 64 KiB less one behind an Ethernet
	// header with two tags.
	maxGSO = 1<<16 - 1 + 14 + 8
	// maxIP is the MTU of connected mode in Linux.
	maxIP = 65520
)

// A Code says in the headers of a format what kind the datagram is.
type Code struct {
	Kind Kind
	Code uint16
}

// A Spec is a row of the table of formats. All lengths are in bytes.
type Spec struct {
	Format   Format
	Name     string
	Carriers Carrier

	// EtherType is that of the Ethernet frame; 0 is that of RoCE, which the carrier has.
	EtherType uint16
	// Headers are those before the datagram, and Trailers those behind it.
	Headers, Trailers []string
	// HeaderLen is the length of the headers before a whole datagram.
	HeaderLen int
	// CodeField is the header field that says the kind, "" where there is but one.
	CodeField string
	Codes     []Code

	// Whole is the longest datagram in one packet: native, or UD with a path MTU of 4096.
	Whole int
	// Segmented is the longest datagram in segments, 0 where there are none.
	Segmented int
	// Connected is the longest datagram in a message of RC or UC, 0 where there are none.
	Connected int
	// Room is the longest packet, or message, with all headers of the format.
	Room int

	Length string // what says how long the datagram is
	Source string // where the format is specified
}

var (
	etherCodes = []Code{
		{Ethernet, etherTypeTEB},
		{IPv4, etherTypeIPv4},
		{IPv6, etherTypeIPv6},
		{ARP, etherTypeARP},
		{RARP, etherTypeRARP},
	}
	frames = []Code{{Kind: Ethernet}}
)

// specs is the table.
var specs = [numFormats]Spec{
	{
		Format: Raw, Name: "raw", Carriers: Native, EtherType: EtherTypeNative,
		Headers: []string{"LRH 8", "RWH 4"}, Trailers: []string{"pad 0-3", "VCRC 2"},
		HeaderLen: wire.LRHLen + wire.RWHLen, CodeField: "RWH.EtherType", Codes: etherCodes,
		Whole: 4*maxWords - wire.LRHLen - wire.RWHLen, Segmented: maxFrame, Room: MaxNative,
		Length: "LRH.PktLen less the pad count in RWH",
		Source: "IBA 7.7 (LNH 0); pad count and segments: ours",
	},
	{
		Format: RawIPv6, Name: "raw6", Carriers: Native, EtherType: EtherTypeNative,
		Headers: []string{"LRH 8"}, Trailers: []string{"pad 0-3", "VCRC 2"},
		HeaderLen: wire.LRHLen, Codes: []Code{{Kind: IPv6}},
		Whole: 4*maxWords - wire.LRHLen, Room: MaxNative,
		Length: "the IPv6 header",
		Source: "IBA 7.7 (LNH 1)",
	},
	{
		Format: RawGRH, Name: "rawgrh", Carriers: Native, EtherType: EtherTypeNative,
		Headers: []string{"LRH 8", "GRH 40"}, Trailers: []string{"pad 0-3", "VCRC 2"},
		HeaderLen: wire.LRHLen + wire.GRHLen, CodeField: "GRH.NxtHdr",
		Codes: []Code{{Ethernet, protocolEther}, {IPv4, protocolIPv4}, {IPv6, protocolIPv6}},
		Whole: 4*maxWords - wire.LRHLen - wire.GRHLen, Room: MaxNative,
		Length: "GRH.PayLen",
		Source: "IBA 7.7, 8.3 (LNH 3, next header not IBA); RFC 2473, RFC 8986",
	},
	{
		Format: EoIB, Name: "eoib", Carriers: Datagrams | Connections,
		Headers: []string{"EoIB 4"}, HeaderLen: WordLen, Codes: frames,
		Whole: maxUD - WordLen, Segmented: maxFrame, Connected: maxGSO, Room: WordLen + maxGSO,
		Length: "the payload",
		Source: "Mellanox EoIB, as in illumos and Wireshark; unit of the segment offset: ours",
	},
	{
		Format: IPoIB, Name: "ipoib", Carriers: Datagrams,
		Headers: []string{"IPoIB 4"}, HeaderLen: IPoIBLen, CodeField: "IPoIB.type",
		Codes: etherCodes[1:], Whole: maxUD - IPoIBLen, Room: maxUD,
		Length: "the payload",
		Source: "RFC 4391",
	},
	{
		Format: IPoIBConnected, Name: "ipoib-cm", Carriers: Connections,
		Headers: []string{"IPoIB 4"}, HeaderLen: IPoIBLen, CodeField: "IPoIB.type",
		Codes: etherCodes[1:3], Connected: maxIP, Room: IPoIBLen + maxIP,
		Length: "the payload",
		Source: "RFC 4755",
	},
	{
		Format: VNIC, Name: "vnic", Carriers: Datagrams | Connections,
		Headers: []string{"VNIC 8"}, Trailers: []string{"pad 0-7", "tail 1"},
		HeaderLen: VNICLen, Codes: frames,
		Whole: maxUD - VNICLen - vnicTail, Segmented: maxFrame, Connected: maxGSO,
		Room:   (VNICLen + maxGSO + vnicTail + vnicAlign - 1) / vnicAlign * vnicAlign,
		Length: "the payload less the pad count in the tail",
		Source: "ours, in the manner of Omni-Path's VNIC",
	},
}

// Formats is the table of formats. It is a copy; what its rows point to must not be changed.
func Formats() []Spec { return slices.Clone(specs[:]) }

// Spec is the row of a format, nil for one that there is not. It must not be changed.
func (f Format) Spec() *Spec {
	if int(f) < numFormats {
		return &specs[f]
	}
	return nil
}

// String is the name of the format.
func (f Format) String() string {
	if s := f.Spec(); s != nil {
		return s.Name
	}
	return fmt.Sprintf("format %d", uint8(f))
}

// ParseFormat finds a format by its name.
func ParseFormat(name string) (Format, error) {
	names := make([]string, numFormats)
	for i := range specs {
		if names[i] = specs[i].Name; names[i] == name {
			return Format(i), nil
		}
	}
	return 0, fmt.Errorf("encap: no format %q: there are %s", name,
		strings.Join(names, ", "))
}

// Carries reports whether the format carries datagrams of a kind.
func (s *Spec) Carries(k Kind) bool { _, ok := s.code(k); return ok }

// code is what the headers say of a kind.
func (s *Spec) code(k Kind) (code uint16, ok bool) {
	for i := range s.Codes {
		if s.Codes[i].Kind == k {
			return s.Codes[i].Code, true
		}
	}
	return 0, false
}

// kind is what a code says, 0 for nothing that the format carries.
func (s *Spec) kind(code uint16) Kind {
	for i := range s.Codes {
		if s.Codes[i].Code == code {
			return s.Codes[i].Kind
		}
	}
	return 0
}
