package filter

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"xroce/engine/capture"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// path is from 192.0.2.1 or 2001:db8::1 to .2 or ::2.
func path(t *testing.T, f wire.Framing, tagged bool) *wire.Template {
	t.Helper()
	p := wire.Path{
		Framing: f, SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
		HopLimit: 64, SrcPort: 50000, TClass: 2,
		Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		Dst: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}
	if tagged {
		p.Tags = wire.VLAN(7).Tags(0)
	}
	if f != wire.FramingV2IPv4 {
		p.Src = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::1"))
		p.Dst = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::2"))
	}
	var template wire.Template
	if err := template.Init(p); err != nil {
		t.Fatal(err)
	}
	return &template
}

// packets are those that filters are tried on, by name.
func packets(t *testing.T) map[string]*capture.Packet {
	t.Helper()
	read := roctest.Packet{
		Opcode: wire.RCReadRequest, PSN: 100, DestQP: 0x11, AckReq: true,
		RETH: wire.RETH{DMALen: 4096},
	}
	ack := roctest.Packet{
		Opcode: wire.RCAck, PSN: 100, DestQP: 0x12, AETH: wire.AETH{Syndrome: 0x61, MSN: 5},
	}
	datagram := roctest.Packet{
		Opcode: wire.UDSendOnly, PSN: 1, DestQP: 0x13, DETH: wire.DETH{SrcQP: 0x14},
		Payload: []byte("four"),
	}
	arp, err := hex.DecodeString("ffffffffffff0200000000010806" + "0001080006040001" +
		"020000000001" + "c0000201" + "000000000000" + "c0000202")
	if err != nil {
		t.Fatal(err)
	}
	v4, v6 := path(t, wire.FramingV2IPv4, false), path(t, wire.FramingV2IPv6, false)
	tagged, v1 := path(t, wire.FramingV2IPv4, true), path(t, wire.FramingV1, false)
	return map[string]*capture.Packet{
		"read": {
			Dir: capture.Outbound, Head: read.Frame(v4),
			Info: capture.Info{QPN: 0x21, Peer: 0x11, HasWR: true, WRID: 7, Verdict: "sent"},
		},
		"ack": {
			Dir: capture.Inbound, Head: ack.Frame(v6),
			Info: capture.Info{Queue: 3, QPN: 0x12, Verdict: "dropped", Reason: "psn_gap"},
		},
		"ud":  {Dir: capture.Inbound, Head: datagram.Frame(tagged)},
		"v1":  {Dir: capture.Inbound, Head: read.Frame(v1)},
		"arp": {Dir: capture.Inbound, Head: arp},
		"cut": {Dir: capture.Inbound, Head: read.Frame(v4)[:30]},
		"":    {Dir: capture.Inbound},
	}
}

// TestMatch tries filters on all packets; those that match are named, in order.
func TestMatch(t *testing.T) {
	all := packets(t)
	for expression, want := range map[string]string{
		"":                                       "read ack ud v1 arp cut ",
		"ip":                                     "read ud cut",
		"ip6":                                    "ack",
		"arp":                                    "arp",
		"udp":                                    "read ack ud cut",
		"tcp or icmp or icmp6":                   "none",
		"roce":                                   "read ack ud v1",
		"inbound":                                "ack ud v1 arp cut ",
		"outbound and roce":                      "read",
		"host 192.0.2.1":                         "read ud arp cut",
		"src host 192.0.2.2":                     "none",
		"dst 192.0.2.2":                          "read ud arp",
		"ip host 192.0.2.2":                      "read ud",
		"src or dst host 2001:db8::2":            "ack",
		"src and dst net 2001:db8::/32":          "ack",
		"net 192.0.2.0/24":                       "read ud arp cut",
		"src 192.0.2.1 and dst 192.0.2.2":        "read ud arp",
		"udp port 4791":                          "read ack ud",
		"src port 4791":                          "none",
		"udp dst port 4791 and ip":               "read ud",
		"portrange 49152-65535":                  "read ack ud",
		"vlan":                                   "ud",
		"vlan 7 and udp":                         "ud",
		"vlan 8":                                 "none",
		"ether proto 0x8915":                     "v1",
		"ether host 02:00:00:00:00:01":           "read ack ud v1 arp cut",
		"ether dst 02:00:00:00:00:02":            "read ack ud v1 cut",
		"ether broadcast":                        "arp",
		"ether multicast":                        "arp",
		"ip proto 17":                            "read ud cut",
		"less 42":                                "arp cut ",
		"greater 70 and ip":                      "read ud",
		"ip[8] == 64":                            "read ud cut",
		"ether[12:2] = 0x8915":                   "v1",
		"udp[8] == 0x0c":                         "read",
		"ip6[6] & 0xf0 != 0":                     "ack",
		"qpn == 0x11":                            "read v1",
		"qpn == 0x11 and opcode == READ_REQUEST": "read v1",
		"qpn = 0x21":                             "read",
		"qpn != 0x11":                            "ack ud",
		"qpn == 0x14":                            "ud",
		"destqp > 0x11":                          "ack ud",
		"opcode == RC_ACK":                       "ack",
		"opcode != rc_ack":                       "read ud v1",
		"opcode == 0x64":                         "ud",
		"psn >= 100 && ackreq":                   "read v1",
		"ackreq == 0":                            "ack ud",
		"syndrome == 0x61 or srcqp == 0x14":      "ack ud",
		"msn == 5":                               "ack",
		"dmalen > 1024":                          "read v1",
		"payload == 4":                           "ud",
		"ecn == 2":                               "read ack ud v1",
		"queue == 3":                             "ack",
		"wr == 7":                                "read",
		"wr":                                     "read",
		"verdict":                                "read ack",
		"verdict == dropped":                     "ack",
		"verdict != DROPPED":                     "read",
		"reason == psn_gap":                      "ack",
		"not ip and not ip6":                     "v1 arp ",
		"!(ip or ip6) && roce":                   "v1",
		"ip6 or ip and vlan":                     "ud", // from left to right, as in tcpdump
		"ip6 or (ip and vlan)":                   "ack ud",
		"infiniband.bth.destqp == 17":            "read v1",
		"frame.len == 30":                        "cut",
	} {
		f, err := Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		var got []string
		for _, name := range []string{"read", "ack", "ud", "v1", "arp", "cut", ""} {
			p := *all[name]
			whole := f.Match(&p)
			// In two pieces it is the same; headers are in the first.
			for cut := max(len(p.Head)-4, 0); cut < len(all[name].Head); cut++ {
				p.Head, p.Tail = all[name].Head[:cut], all[name].Head[cut:]
				if f.Match(&p) != whole {
					t.Errorf("%s: %s in pieces of %d and %d differs", expression, name, cut,
						len(p.Tail))
				}
			}
			if whole {
				got = append(got, name)
			}
		}
		if got == nil {
			got = []string{"none"}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", expression, s, want)
		}
	}
}

// TestErrors: a filter that is wrong is told of with a caret below what is wrong.
func TestErrors(t *testing.T) {
	for expression, want := range map[string]string{
		"qpn ==":                  "qpn ==\n        ^",
		"qpn == ABC":              "qpn == ABC\n         ^",
		"qpn":                     "at the end",
		"qpn == 0x11 and":         "want a condition at the end",
		"qpm == 0x11":             "\"qpm\" is no condition\n  qpm == 0x11\n  ^",
		"opcode == REED_REQUEST":  "no opcode has the name \"REED_REQUEST\"",
		"opcode < READ_REQUEST":   "== and != alone",
		"verdict > dropped":       "== and != alone",
		"host 1.2.3":              "want an IP address, not \"1.2.3\"\n  host 1.2.3\n       ^",
		"host":                    "want an IP address at the end",
		"net 192.0.2.1/24":        "is 192.0.2.0/24 meant?",
		"port 65536":              "want a number of 16 bits",
		"portrange 9-3":           "want two ports",
		"(ip":                     "want \")\" at the end",
		"ip)":                     "unexpected \")\"",
		"ip and or ip6":           "\"or\" is no condition",
		"ip $ ip6":                "\"$\" is no part",
		"ip[1":                    "want \"]\" at the end",
		"ip[1:3] == 2":            "1, 2 or 4 bytes",
		"ip[1]":                   "want one of ==",
		"ether host 1:2":          "want a MAC address",
		"vlan 4096":               "want a number of 12 bits",
		"\x1b[2Jip":               "  ^",
		"ip é":                    "no part of a filter",
		strings.Repeat("(", 2000): "deeper than",
		strings.Repeat("a", 5000): "longer than",
	} {
		_, err := Compile(expression)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) ||
			strings.ContainsRune(err.Error(), 0x1b) && !strings.Contains(err.Error(), `\x1b`) {
			t.Errorf("%.40s: %v", expression, err)
		}
	}
}

// TestNoise: no expression and no packet does harm.
func TestNoise(t *testing.T) {
	words := strings.Fields(`ip ip6 udp ether host net src dst or and not ( ) [ ] : & == != < 0x11
		192.0.2.1 192.0.2.0/24 qpn opcode READ_REQUEST vlan port 4791 0 : ! verdict é`)
	rng := rand.New(rand.NewPCG(1, 2))
	all := packets(t)
	compiled := 0
	for range 20000 {
		var e []string
		for range 1 + rng.IntN(8) {
			e = append(e, words[rng.IntN(len(words))])
		}
		f, err := Compile(strings.Join(e, " "))
		if err != nil {
			if (f != nil) || err.Error() == "" {
				t.Fatal(e)
			}
			continue
		}
		compiled++
		for _, p := range all {
			f.Match(p)
		}
	}
	if compiled == 0 {
		t.Error("not one expression was right")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	f, err := Compile("qpn == 0x11 and opcode == READ_REQUEST and src host 192.0.2.1 and port 4791")
	if err != nil {
		t.Fatal(err)
	}
	p := packets(t)["read"]
	if n := testing.AllocsPerRun(100, func() {
		if !f.Match(p) {
			t.Error("no match")
		}
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
