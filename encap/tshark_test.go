package encap

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/wire"
)

// Link types of captures.
const (
	linkEthernet = 1
	linkERF      = 197
)

// erfHeader is the header of an ERF record of type 21, InfiniBand, before n bytes: a time
// stamp, the type, flags (variable length), the length with the header, no loss, the length on
// the wire.
func erfHeader(n int) []byte {
	b := append(make([]byte, 8), 21, 4)
	b = binary.BigEndian.AppendUint16(b, uint16(16+n))
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

// pcap is a capture file.
func pcap(link uint32, packets [][]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 4<<16|2)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, 1<<17)
	b = le.AppendUint32(b, link)
	for _, p := range packets {
		if link == linkERF {
			p = append(erfHeader(len(p)), p...)
		}
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(b, uint32(len(p)))
		b = le.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

// tshark decodes a capture and returns what it says in each field of each packet.
func tshark(
	t *testing.T, link uint32, packets [][]byte, fields []string, options ...string,
) [][]string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	name := filepath.Join(t.TempDir(), "packets.pcap")
	if err := os.WriteFile(name, pcap(link, packets), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-r", name, "-T", "fields", "-E", "separator=;"}, options...)
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimRight(string(out), "\n"), "\n") {
		rows = append(rows, strings.Split(line, ";"))
	}
	if len(rows) != len(packets) {
		t.Fatalf("tshark saw %d packets of %d", len(rows), len(packets))
	}
	return rows
}

// TestTshark: tshark knows the packets that were written by hand: none is malformed, the
// headers say what they should, and inside is the datagram where tshark 4.0 looks inside.
// Behind a GRH it shows nothing, and of the virtual switch bytes.
func TestTshark(t *testing.T) {
	fields := []string{
		"_ws.malformed", "frame.protocols", "infiniband.lrh.lnh", "infiniband.lrh.pktlen",
		"infiniband.rwh.etype", "infiniband.grh.nxthdr", "infiniband.grh.paylen",
		"infiniband.eoib.tcp_chk", "infiniband.variant.crc",
	}
	const (
		erf    = "erf:infiniband"
		roce   = "eth:ethertype:ip:udp:infiniband:"
		eoib   = "infiniband.eoib:"
		inside = "eth:ethertype:ip:udp:data"
	)
	want := map[string]string{
		"Ethernet in a raw packet":        ";" + erf + ":" + inside + ";0x00;15;0x6558;;;;",
		"IPv4 in a raw packet":            ";" + erf + ":ip:udp:data;0x00;11;0x0800;;;;",
		"raw IPv6":                        ";" + erf + ":ipv6:udp:data;0x01;15;;;;;",
		"Ethernet behind a GRH":           ";" + erf + ";0x03;24;;143;45;;",
		"IPv4 behind a GRH":               ";" + erf + ";0x03;20;;4;31;;",
		"Ethernet over InfiniBand":        ";" + roce + eoib + inside + ";;;;;;0x0001;",
		"IPv4 over InfiniBand":            ";" + roce + "ethertype:ip:udp:data;;;0x0800;;;;",
		"IPv6 over InfiniBand, connected": ";" + roce + "ethertype:ipv6:udp:data;;;0x86dd;;;;",
		"virtual switch":                  ";" + roce + "data;;;;;;;",
	}
	packets := map[uint32][][]byte{}
	names := map[uint32][]string{}
	for _, v := range vectors {
		link, b := uint32(linkERF), unhex(t, v.packet)
		if v.format <= RawIPv6 { // tshark shows the VCRC where it sees the end
			want[v.name] += fmt.Sprintf("0x%x", b[len(b)-wire.VCRCLen:])
		}
		if v.format > RawGRH {
			op := wire.UDSendOnly
			if v.format == IPoIBConnected {
				op = wire.RCSendOnly
			}
			link, b = linkEthernet, overRoCE(t, wire.FramingV2IPv4, op, b)
		}
		packets[link], names[link] = append(packets[link], b), append(names[link], v.name)
	}
	for link, list := range packets {
		for i, row := range tshark(t, link, list, fields, "-E", "occurrence=f") {
			if name, got := names[link][i], strings.Join(row, ";"); got != want[name] {
				t.Errorf("%s:\n tshark %s\n want   %s", name, got, want[name])
			}
		}
	}
}

// TestTsharkScript: with xroce.lua tshark shows the datagram in every format, and that of
// native packets also behind an Ethernet header, with padding behind them.
func TestTsharkScript(t *testing.T) {
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	if version, err := exec.Command(program, "-v").Output(); err != nil ||
		!strings.Contains(string(version), "with Lua") {
		t.Skipf("tshark has no Lua: %v", err)
	}
	fields := []string{"_ws.malformed", "ip.dst", "ipv6.dst", "udp.dstport", "data.data"}
	const ipv4, ipv6 = ";10.0.0.2;;40000;616263", ";;fd00::2;40000;616263"
	packets, want := map[uint32][][]byte{}, map[uint32][]string{}
	add := func(link uint32, b []byte, text string) {
		packets[link], want[link] = append(packets[link], b), append(want[link], text)
	}
	for _, v := range vectors {
		b, text := unhex(t, v.packet), ipv4
		if v.kind == IPv6 {
			text = ipv6
		}
		if v.format > RawGRH {
			add(linkEthernet, overRoCE(t, wire.FramingV1, wire.UDSendOnly, b), text)
			continue
		}
		add(linkERF, b, text)
		padded := append(onEthernet(EtherTypeNative, 1, b), make([]byte, 20)...)
		add(linkEthernet, padded, text)
	}
	for link, list := range packets {
		rows := tshark(t, link, list, fields, "-E", "occurrence=l", "-X",
			"lua_script:../cmd/xroce/internal/wireshark/xroce.lua")
		for i, row := range rows {
			if got := strings.Join(row, ";"); got != want[link][i] {
				t.Errorf("packet %d of link type %d: %s, want %s", i+1, link, got, want[link][i])
			}
		}
	}
}
