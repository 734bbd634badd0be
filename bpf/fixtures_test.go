package bpf

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata instead of comparing with it")

// The addresses that the fixtures are owned or not owned by.
var (
	ownIPv4   = netip.MustParseAddr("192.0.2.1")
	otherIPv4 = netip.MustParseAddr("192.0.2.9")
	groupIPv4 = netip.MustParseAddr("239.1.2.3")
	ownIPv6   = netip.MustParseAddr("2001:db8::1")
	otherIPv6 = netip.MustParseAddr("2001:db8::9")
	groupIPv6 = netip.MustParseAddr("ff0e::1:2")

	ownMAC   = [6]byte{0x02, 0, 0, 0, 0, 0x01}
	otherMAC = [6]byte{0x02, 0, 0, 0, 0, 0x09}

	v1MAC     = [6]byte{0x02, 0, 0, 0, 0, 0x0a} // owned for RoCE v1 alone
	nativeMAC = [6]byte{0x02, 0, 0, 0, 0, 0x0b} // owned for native InfiniBand alone
	groupMAC  = [6]byte{0x33, 0x33, 0, 0, 0, 0x01}
	allMAC    = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

// ownedKeys are the keys that the program under test owns.
func ownedKeys() map[Key]bool {
	keys := map[Key]bool{
		V1Key(ownMAC): true, V1Key(groupMAC): true, V1Key(v1MAC): true,
		NativeKey(ownMAC): true, NativeKey(groupMAC): true, NativeKey(nativeMAC): true,
	}
	for _, addr := range []netip.Addr{ownIPv4, groupIPv4, ownIPv6, groupIPv6} {
		k, err := AddrKey(addr)
		if err != nil {
			panic(err)
		}
		keys[k] = true
	}
	return keys
}

// cat joins parts of a frame.
func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// ether makes an Ethernet header; types are the outer TPIDs and the EtherType.
func ether(dst [6]byte, types ...uint16) []byte {
	b := cat(dst[:], []byte{0x02, 0, 0, 0, 0, 0x02})
	for i, t := range types {
		if i > 0 {
			b = append(b, 0x60, byte(i)) // PCP 3, VLAN 1, 2, ...
		}
		b = binary.BigEndian.AppendUint16(b, t)
	}
	return b
}

// ipv4 makes an IPv4 packet with a right length and a right checksum.
func ipv4(dst netip.Addr, proto byte, options, payload []byte) []byte {
	b := make([]byte, 20, 20+len(options)+len(payload))
	b[0] = 0x40 | byte((20+len(options))/4)
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(options)+len(payload)))
	b[6] = 0x40 // DF
	b[8], b[9] = 64, proto
	copy(b[12:], []byte{192, 0, 2, 2})
	copy(b[16:], dst.AsSlice())
	b = append(b, options...)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
	return append(b, payload...)
}

// ipv6 makes an IPv6 packet with a right length.
func ipv6(dst netip.Addr, next byte, payload []byte) []byte {
	b := make([]byte, 40, 40+len(payload))
	b[0] = 0x60
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6], b[7] = next, 64
	src := netip.MustParseAddr("2001:db8::2").As16()
	copy(b[8:], src[:])
	copy(b[24:], dst.AsSlice())
	return append(b, payload...)
}

// udp makes a UDP datagram with a right length and no checksum.
func udp(dport uint16, payload []byte) []byte {
	b := make([]byte, 8, 8+len(payload))
	binary.BigEndian.PutUint16(b, 0xC001)
	binary.BigEndian.PutUint16(b[2:], dport)
	binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
	return append(b, payload...)
}

// roce makes a BTH for an RC SEND Only, n bytes of payload, and room for the
// ICRC. The program looks at none of it.
func roce(n int) []byte {
	b := make([]byte, 12+n+4)
	b[0], b[2], b[3], b[7] = 0x04, 0xff, 0xff, 0x11
	for i := range n {
		b[12+i] = byte(i)
	}
	return b
}

// poke returns a copy of a frame with one byte replaced.
func poke(frame []byte, at int, value byte) []byte {
	b := bytes.Clone(frame)
	b[at] = value
	return b
}

// udp4 and udp6 are the plain RoCE v2 frames that most fixtures vary.
func udp4(dst netip.Addr) []byte {
	return cat(ether(ownMAC, ethPIP), ipv4(dst, 17, nil, udp(4791, roce(64))))
}

func udp6(dst netip.Addr) []byte {
	return cat(ether(ownMAC, ethPIPv6), ipv6(dst, 17, udp(4791, roce(64))))
}

// A fixture is one named packet and what has to become of it.
type fixture struct {
	name   string
	frame  []byte
	reason Reason
	why    string
}

// fixtures is the table of verdicts. Offsets in an untagged frame: 14 is the IP
// header; 34 and 54 are UDP behind IPv4 and IPv6.
func fixtures() []fixture {
	var all []fixture
	for _, part := range [][]fixture{
		v2Fixtures(), fragmentFixtures(), lengthFixtures(), vlanFixtures(), macFixtures(),
		hostFixtures(), truncatedFixtures(),
	} {
		all = append(all, part...)
	}
	return all
}

func v2Fixtures() []fixture {
	p := roce(64)
	options := []byte{0x94, 4, 0, 0, 1, 1, 1, 0} // router alert, padding
	mapped := netip.AddrFrom16(ownIPv4.As16())
	return []fixture{
		{"v2_ipv4_own", udp4(ownIPv4), RedirectV2IPv4, "the plain case"},
		{"v2_ipv4_other", udp4(otherIPv4), PassNotOurs, "address of somebody else"},
		{"v2_ipv4_group", udp4(groupIPv4), RedirectV2IPv4, "a group is an entry too"},
		{"v2_ipv4_options", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, options,
			udp(4791, p))), RedirectV2IPv4, "UDP is found behind the options"},
		{"v2_ipv4_options_max", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17,
			make([]byte, 40), udp(4791, p))), RedirectV2IPv4, "IHL 15"},
		{"v2_ipv4_options_fake_port", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17,
			udp(4791, nil), udp(53, p))), PassNotRoCE, "options that look like UDP 4791"},
		{"v2_ipv4_jumbo", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, nil,
			udp(4791, roce(8192)))), RedirectV2IPv4, "more than a page"},
		{
			"v2_ipv4_padded", cat(udp4(ownIPv4), make([]byte, 18)), RedirectV2IPv4,
			"Ethernet padding behind the packet",
		},
		{"v2_ipv4_empty", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, nil,
			udp(4791, nil))), RedirectV2IPv4, "no BTH: for the engine to count"},
		{
			"v2_ipv4_other_mac", poke(udp4(ownIPv4), 5, 0x09), RedirectV2IPv4,
			"the MAC address does not matter for RoCE v2",
		},
		{
			"v2_ipv4_reserved_flag", poke(udp4(ownIPv4), 20, 0x80), RedirectV2IPv4,
			"the reserved flag makes no fragment",
		},
		{"v2_ipv6_own", udp6(ownIPv6), RedirectV2IPv6, "the plain case"},
		{"v2_ipv6_other", udp6(otherIPv6), PassNotOurs, "address of somebody else"},
		{"v2_ipv6_group", udp6(groupIPv6), RedirectV2IPv6, "a group is an entry too"},
		{
			"v2_ipv6_mapped", udp6(mapped), PassNotOurs,
			"a mapped address in an IPv6 header is not the IPv4 address",
		},
		{
			"v2_ipv6_hop_by_hop", cat(ether(ownMAC, ethPIPv6), ipv6(ownIPv6, nextHop,
				cat([]byte{17, 0, 5, 2, 0, 0, 1, 0}, udp(4791, p)))), PassExtension,
			"no RoCE sender has extension headers",
		},
		{"v2_ipv6_routing", poke(udp6(ownIPv6), 20, nextRouting), PassExtension, "same"},
		{"v2_ipv6_esp", poke(udp6(ownIPv6), 20, nextESP), PassExtension, "same"},
		{"v2_ipv6_auth", poke(udp6(ownIPv6), 20, nextAuth), PassExtension, "same"},
		{"v2_ipv6_destination", poke(udp6(ownIPv6), 20, nextDest), PassExtension, "same"},
		{"v2_ipv6_mobility", poke(udp6(ownIPv6), 20, nextMobility), PassExtension, "same"},
	}
}

func fragmentFixtures() []fixture {
	return []fixture{
		{
			"ipv4_fragment_first", poke(udp4(ownIPv4), 20, 0x20), PassFragment,
			"MF: the kernel reassembles",
		},
		{
			"ipv4_fragment_middle", poke(poke(udp4(ownIPv4), 20, 0x20), 21, 0xb9), PassFragment,
			"no UDP header here",
		},
		{
			"ipv4_fragment_last", poke(poke(udp4(ownIPv4), 20, 0), 21, 0xb9), PassFragment,
			"an offset without MF",
		},
		{
			"ipv4_fragment_tcp", poke(poke(udp4(ownIPv4), 20, 0x20), 23, 6), PassNotRoCE,
			"a fragment, but of TCP",
		},
		{
			"ipv6_fragment", cat(ether(ownMAC, ethPIPv6), ipv6(ownIPv6, nextFragment,
				cat([]byte{17, 0, 0, 1, 0, 0, 0, 7}, udp(4791, roce(64))))), PassFragment,
			"the kernel reassembles",
		},
	}
}

func lengthFixtures() []fixture {
	return []fixture{
		{
			"ipv4_version_6", poke(udp4(ownIPv4), 14, 0x65), PassMalformed,
			"EtherType and version disagree",
		},
		{"ipv4_ihl_0", poke(udp4(ownIPv4), 14, 0x40), PassMalformed, "IHL below 5"},
		{"ipv4_ihl_4", poke(udp4(ownIPv4), 14, 0x44), PassMalformed, "IHL below 5"},
		{
			"ipv4_total_0", poke(poke(udp4(ownIPv4), 16, 0), 17, 0), PassMalformed,
			"total length below the header's own",
		},
		{
			"ipv4_total_24", poke(poke(udp4(ownIPv4), 16, 0), 17, 24), PassMalformed,
			"total length leaves no room for UDP",
		},
		{
			"ipv4_total_huge", poke(udp4(ownIPv4), 16, 0xff), PassTruncated,
			"total length beyond the frame",
		},
		{
			"ipv4_total_one_more", poke(udp4(ownIPv4), 17, 109), PassTruncated,
			"total length one byte beyond the frame",
		},
		{"ipv4_udp_length_0", poke(udp4(ownIPv4), 39, 0), PassMalformed, "UDP length below 8"},
		{"ipv4_udp_length_7", poke(udp4(ownIPv4), 39, 7), PassMalformed, "UDP length below 8"},
		{
			"ipv4_udp_length_8", poke(udp4(ownIPv4), 39, 8), RedirectV2IPv4,
			"less than IP leaves room for: for the engine to count",
		},
		{
			"ipv4_udp_length_over", poke(udp4(ownIPv4), 39, 89), PassMalformed,
			"UDP length beyond the IP packet",
		},
		{
			"ipv6_version_4", poke(udp6(ownIPv6), 14, 0x40), PassMalformed,
			"EtherType and version disagree",
		},
		{"ipv6_payload_0", poke(udp6(ownIPv6), 19, 0), PassMalformed, "jumbograms are not RoCE"},
		{
			"ipv6_payload_huge", poke(udp6(ownIPv6), 18, 0xff), PassTruncated,
			"payload length beyond the frame",
		},
		{
			"ipv6_udp_length_over", poke(udp6(ownIPv6), 59, 89), PassMalformed,
			"UDP length beyond the IP packet",
		},
	}
}

func vlanFixtures() []fixture {
	p4, p6 := udp4(ownIPv4)[14:], udp6(ownIPv6)[14:]
	const q, ad = ethP8021Q, ethP8021AD
	return []fixture{
		{
			"vlan_1", cat(ether(ownMAC, q, ethPIP), p4), RedirectV2IPv4,
			"a tagged frame counts as ours when the address is",
		},
		{"vlan_1_ipv6", cat(ether(ownMAC, q, ethPIPv6), p6), RedirectV2IPv6, "same"},
		{"vlan_1_8021ad", cat(ether(ownMAC, ad, ethPIP), p4), RedirectV2IPv4, "a service tag"},
		{
			"vlan_2", cat(ether(ownMAC, ad, q, ethPIP), p4), RedirectV2IPv4,
			"service tag and customer tag",
		},
		{
			"vlan_2_8021q", cat(ether(ownMAC, q, q, ethPIPv6), p6), RedirectV2IPv6,
			"two customer tags, as some switches do",
		},
		{"vlan_2_v1", cat(ether(ownMAC, ad, q, ethPIBoE), roce(64)), RedirectV1, "two tags"},
		{"vlan_2_options_max", cat(ether(ownMAC, ad, q, ethPIP), ipv4(ownIPv4, 17,
			make([]byte, 40), udp(4791, roce(64)))), RedirectV2IPv4, "the longest headers"},
		{"vlan_3", cat(ether(ownMAC, ad, q, q, ethPIP), p4), PassVLANDepth, "one too many"},
		{
			"vlan_3_tcp", cat(ether(ownMAC, q, q, q, ethPIP), poke(p4, 9, 6)), PassVLANDepth,
			"nobody looks behind the second tag",
		},
		{
			"vlan_1_arp", cat(ether(allMAC, q, 0x0806), make([]byte, 28)), PassNotRoCE,
			"tagged ARP",
		},
	}
}

func macFixtures() []fixture {
	grh := make([]byte, 40)
	grh[0], grh[6] = 0x60, 0x1b
	v1 := cat(grh, roce(64))
	lrh := cat([]byte{0, 2, 0, 1, 0, 22, 0, 2}, roce(64), []byte{0, 0})
	return []fixture{
		{"v1_own", cat(ether(ownMAC, ethPIBoE), v1), RedirectV1, "the plain case"},
		{"v1_group", cat(ether(groupMAC, ethPIBoE), v1), RedirectV1, "a group is an entry too"},
		{"v1_other", cat(ether(otherMAC, ethPIBoE), v1), PassNotOurs, "MAC of somebody else"},
		{
			"v1_broadcast", cat(ether(allMAC, ethPIBoE), v1), PassNotOurs,
			"broadcast is nobody's until it is owned",
		},
		{"v1_vlan", cat(ether(ownMAC, ethP8021Q, ethPIBoE), v1), RedirectV1, "tagged"},
		{"v1_empty", ether(ownMAC, ethPIBoE), RedirectV1, "no GRH: for the engine to count"},
		{"v1_only", cat(ether(v1MAC, ethPIBoE), v1), RedirectV1, "RoCE v1 is wanted"},
		{"v1_unwanted", cat(ether(nativeMAC, ethPIBoE), v1), PassNotOurs, "only native is wanted"},
		{"native_only", cat(ether(nativeMAC, ethPNative), lrh), RedirectNative, "native is wanted"},
		{
			"native_unwanted", cat(ether(v1MAC, ethPNative), lrh), PassNotOurs,
			"only RoCE v1 is wanted",
		},
		{"native_own", cat(ether(ownMAC, ethPNative), lrh), RedirectNative, "the plain case"},
		{
			"native_group", cat(ether(groupMAC, ethPNative), lrh), RedirectNative,
			"a group is an entry too",
		},
		{
			"native_other", cat(ether(otherMAC, ethPNative), lrh), PassNotOurs,
			"MAC of somebody else",
		},
		{"native_vlan", cat(ether(ownMAC, ethP8021AD, ethPNative), lrh), RedirectNative, "tagged"},
	}
}

func hostFixtures() []fixture {
	tcp := make([]byte, 20)
	binary.BigEndian.PutUint16(tcp, 4791)
	binary.BigEndian.PutUint16(tcp[2:], 4791)
	return []fixture{
		{
			"tcp4_4791", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 6, nil, tcp)), PassNotRoCE,
			"TCP, port 4791 or not",
		},
		{"tcp6_4791", cat(ether(ownMAC, ethPIPv6), ipv6(ownIPv6, 6, tcp)), PassNotRoCE, "same"},
		{
			"udp4_53", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, nil, udp(53, roce(8)))),
			PassNotRoCE, "another port",
		},
		{
			"udp6_53", cat(ether(ownMAC, ethPIPv6), ipv6(ownIPv6, 17, udp(53, roce(8)))),
			PassNotRoCE, "another port",
		},
		{"udp4_swapped_port", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, nil,
			udp(0xB712, roce(8)))), PassNotRoCE, "4791 in the wrong byte order"},
		{
			"udp4_source_4791", poke(poke(cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, nil,
				udp(53, roce(8)))), 34, 0x12), 35, 0xb7), PassNotRoCE,
			"the source port does not count",
		},
		{"udp4_53_bad_length", poke(cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, nil,
			udp(53, roce(8)))), 16, 0xff), PassNotRoCE, "lengths of others are not judged"},
		{"arp", cat(ether(allMAC, 0x0806), make([]byte, 28)), PassNotRoCE, "ARP"},
		{"icmp", cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 1, nil, []byte{
			8, 0, 0xf7, 0xff,
			0, 0, 0, 0,
		})), PassNotRoCE, "ping"},
		{
			"icmp6_nd", cat(ether(groupMAC, ethPIPv6), ipv6(groupIPv6, 58, make([]byte, 24))),
			PassNotRoCE, "neighbour discovery",
		},
		{"lldp", cat(ether(otherMAC, 0x88cc), make([]byte, 46)), PassNotRoCE, "LLDP"},
		{
			"llc", cat(ether(otherMAC, 46), make([]byte, 46)), PassNotRoCE,
			"a length instead of an EtherType",
		},
	}
}

// truncatedFixtures cuts frames one byte before the end of each header.
func truncatedFixtures() []fixture {
	tagged := cat(ether(ownMAC, ethP8021AD, ethP8021Q, ethPIP), udp4(ownIPv4)[14:])
	options := cat(ether(ownMAC, ethPIP), ipv4(ownIPv4, 17, make([]byte, 12), udp(4791, roce(64))))
	return []fixture{
		{"cut_empty", nil, PassTruncated, "no byte at all"},
		{"cut_ethernet", udp4(ownIPv4)[:13], PassTruncated, "13 bytes"},
		{"cut_after_ethernet", udp4(ownIPv4)[:14], PassTruncated, "no IPv4 header"},
		{"cut_vlan_1", tagged[:17], PassTruncated, "in the first tag"},
		{"cut_vlan_2", tagged[:21], PassTruncated, "in the second tag"},
		{"cut_after_vlan", tagged[:22], PassTruncated, "no IPv4 header behind the tags"},
		{"cut_ipv4", udp4(ownIPv4)[:33], PassTruncated, "in the IPv4 header"},
		{"cut_ipv4_options", options[:45], PassTruncated, "in the options"},
		{"cut_udp4", udp4(ownIPv4)[:41], PassTruncated, "in the UDP header"},
		{"cut_after_udp4", udp4(ownIPv4)[:42], PassTruncated, "no UDP payload"},
		{"cut_payload4", udp4(ownIPv4)[:121], PassTruncated, "one byte short"},
		{"cut_ipv6", udp6(ownIPv6)[:53], PassTruncated, "in the IPv6 header"},
		{"cut_udp6", udp6(ownIPv6)[:61], PassTruncated, "in the UDP header"},
		{"cut_payload6", udp6(ownIPv6)[:141], PassTruncated, "one byte short"},
	}
}

// TestFixtures holds testdata to the generator: the packets as files, and the
// table for people.
func TestFixtures(t *testing.T) {
	var table strings.Builder
	table.WriteString("# Packets and what becomes of them\n\n" +
		"Written by `go test ./bpf -run TestFixtures -update`. The program owns 192.0.2.1,\n" +
		"239.1.2.3, 2001:db8::1, ff0e::1:2, 02:00:00:00:00:01 and 33:33:00:00:00:01, and\n" +
		"the queue has a socket.\n\n" +
		"| file | bytes | verdict | reason | why |\n|---|---|---|---|---|\n")
	want := map[string][]byte{}
	for _, f := range fixtures() {
		file := f.name + ".bin"
		if want[file] != nil {
			t.Errorf("two fixtures have the name %s", f.name)
		}
		want[file] = f.frame
		fmt.Fprintf(&table, "| %s | %d | %v | %v | %s |\n",
			file, len(f.frame), f.reason.Verdict(), f.reason, f.why)
	}
	want["README.md"] = []byte(table.String())

	for name, data := range want {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(have, data) {
			t.Errorf("%s differs from what the generator makes", path)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if _, ok := want[filepath.Base(path)]; !ok {
			t.Errorf("%s belongs to no fixture", path)
		}
	}
}
