package bpf

import "fmt"

// Verdict is what the program does with a packet, with the kernel's number
// (enum xdp_action in include/uapi/linux/bpf.h).
type Verdict uint32

// The only two verdicts: the program neither drops nor changes packets.
const (
	Pass     Verdict = 2 // XDP_PASS: the kernel goes on as if there were no program
	Redirect Verdict = 4 // XDP_REDIRECT: to the socket of the packet's receive queue
)

// String returns the kernel's name of the verdict.
func (v Verdict) String() string {
	switch v {
	case Pass:
		return "XDP_PASS"
	case Redirect:
		return "XDP_REDIRECT"
	}
	return fmt.Sprintf("Verdict(%d)", uint32(v))
}

// Reason says why the program gave its verdict. Each reason has a counter, and
// each packet counts under exactly one.
type Reason uint32

// The reasons, with the numbers of enum reason in xdp.c.
const (
	RedirectV2IPv4 Reason = iota // RoCE v2 over IPv4 for an address that we own
	RedirectV2IPv6               // RoCE v2 over IPv6 for an address that we own
	RedirectV1                   // RoCE v1 for a MAC address that we own
	RedirectNative               // native InfiniBand for a MAC address that we own
	PassNotRoCE                  // other EtherType, protocol or port
	PassNotOurs                  // RoCE for an address that we do not own
	PassFragment                 // UDP in an IPv4 fragment, or an IPv6 fragment header
	PassExtension                // another IPv6 extension header before the transport
	PassMalformed                // IP version, header length, or lengths that disagree
	PassTruncated                // the frame ends before the packet does
	PassVLANDepth                // more than two VLAN tags
	PassNoSocket                 // ours, but no socket is registered for the queue

	// NumReasons is the number of reasons.
	NumReasons = iota
)

var reasonNames = [NumReasons]string{
	RedirectV2IPv4: "redirect_v2_ipv4",
	RedirectV2IPv6: "redirect_v2_ipv6",
	RedirectV1:     "redirect_v1",
	RedirectNative: "redirect_native",
	PassNotRoCE:    "pass_not_roce",
	PassNotOurs:    "pass_not_ours",
	PassFragment:   "pass_fragment",
	PassExtension:  "pass_extension",
	PassMalformed:  "pass_malformed",
	PassTruncated:  "pass_truncated",
	PassVLANDepth:  "pass_vlan_depth",
	PassNoSocket:   "pass_no_socket",
}

// String returns the name of the reason's counter.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint32(r))
}

// Verdict is the verdict that goes with the reason.
func (r Reason) Verdict() Verdict {
	if r <= RedirectNative {
		return Redirect
	}
	return Pass
}

// A Count is what happened for one reason since Attach.
type Count struct {
	Packets uint64
	Bytes   uint64 // from the Ethernet header on, without FCS
}

// Counters has the counts of all reasons: c[PassNotOurs].Packets.
type Counters [NumReasons]Count
