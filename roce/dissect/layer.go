package dissect

import "fmt"

// Kind is what a layer is.
type Kind uint8

// The kinds of layers.
const (
	ERF Kind = iota
	Ethernet
	Cooked
	Cooked2
	Null
	VLAN
	ServiceVLAN // the outer tag of QinQ, IEEE 802.1ad
	ARP
	IPv4
	IPv6
	IPv6Extension
	ICMP
	TCP
	UDP
	GRE
	VXLAN
	ERSPAN
	LRH
	RWH
	GRH
	BTH
	Extended // the extended headers
	Payload
	MAD
	ICRC
	VCRC
	Native // the EtherType of native packets
	Encap  // a header of package encap
	Other  // what nobody here looks into

	numKinds = int(iota)
)

var kindNames = [numKinds]string{
	ERF: "ERF", Ethernet: "Ethernet", Cooked: "Linux cooked v1", Cooked2: "Linux cooked v2",
	Null: "BSD loopback", VLAN: "VLAN", ServiceVLAN: "QinQ", ARP: "ARP", IPv4: "IPv4", IPv6: "IPv6",
	IPv6Extension: "IPv6 extension", ICMP: "ICMP", TCP: "TCP", UDP: "UDP", GRE: "GRE",
	VXLAN: "VXLAN", ERSPAN: "ERSPAN", LRH: "LRH", RWH: "RWH", GRH: "GRH", BTH: "BTH",
	Extended: "extended", Payload: "payload", MAD: "MAD", ICRC: "ICRC", VCRC: "VCRC",
	Native: "InfiniBand", Encap: "encap", Other: "data",
}

// String names the kind.
func (k Kind) String() string {
	if int(k) < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// maxLayers is how many layers are looked through. What is below them stays bytes.
const maxLayers = 24

// A Layer is a header, from an offset in the bytes of the packet on.
type Layer struct {
	Kind     Kind
	Off, Len int
}

// Verdict says whether a CRC is right.
type Verdict uint8

// The verdicts.
const (
	NoCRC Verdict = iota // there is none, or it could not be found
	Good
	Bad
	Cut // the capture lacks bytes that it covers
)

// String is "-", "ok", "BAD" or "cut".
func (v Verdict) String() string { return [...]string{"-", "ok", "BAD", "cut"}[v&3] }
