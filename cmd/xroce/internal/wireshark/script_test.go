package wireshark

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/dissect"
	"xroce/roce/msg"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// captures are files of other programs.
const captures = "../../../../roce/wire/testdata/captures"

// pcap is a file of frames of Ethernet.
func pcap(frames [][]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 4<<16|2)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 1<<17), 1)
	for _, f := range frames {
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

// tshark returns what tshark says with the script in fields of frames.
func tshark(t *testing.T, frames [][]byte, fields []string) [][]string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	version, err := exec.Command(program, "-v").Output()
	if err != nil || !strings.Contains(string(version), "with Lua") {
		t.Skipf("tshark has no Lua: %v", err)
	}
	name := filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(name, pcap(frames), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-r", name, "-n", "-T", "fields", "-E", "separator=;", "-E", "occurrence=f",
		"--disable-heuristic", "rpcrdma_infiniband", "-X", "lua_script:xroce.lua",
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var complaints strings.Builder
	command := exec.Command(program, args...)
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil || strings.Contains(complaints.String(), "Lua") {
		t.Fatalf("tshark: %v: %s", err, complaints.String())
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		rows = append(rows, strings.Split(line, ";"))
	}
	if len(rows) != len(frames) {
		t.Fatalf("tshark saw %d packets of %d", len(rows), len(frames))
	}
	return rows
}

// everyOpcode is a packet of each opcode in each framing, and each with a wrong ICRC.
func everyOpcode(t *testing.T) (frames [][]byte) {
	t.Helper()
	for _, path := range []wire.Path{
		{Framing: wire.FramingV2IPv4}, {Framing: wire.FramingV2IPv6}, {Framing: wire.FramingV1},
	} {
		path.Src = wire.GIDFromAddr(netip.MustParseAddr("fd00::1"))
		path.Dst = wire.GIDFromAddr(netip.MustParseAddr("fd00::2"))
		if path.Framing == wire.FramingV2IPv4 {
			path.Src = wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1"))
			path.Dst = wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2"))
		}
		path.HopLimit, path.TClass, path.FlowLabel = 64, 0x6a, 0x12345
		var template wire.Template
		if err := template.Init(path); err != nil {
			t.Fatal(err)
		}
		for op, spec := range wire.Opcodes() {
			if spec.Service == wire.ServiceRD {
				continue // tshark reads its DETH 8 bytes too late
			}
			n := 8
			for !spec.Payload.Allows(n, 1024) {
				n = (n + 8) % 1032
			}
			p := roctest.Packet{
				Opcode: op, PSN: 0x123456, DestQP: 0xabcdef, Payload: bytes.Repeat([]byte{7}, n),
				RETH: wire.RETH{VA: 0x1122334455667788, RKey: 0x99aabbcc, DMALen: 8},
				Imm:  0x01020304, IETH: 0x05060708, SRQN: 0x778899,
				FETH: wire.FETH{SEL: 1, PLT: 3}, AETH: wire.AETH{Syndrome: 0x60, MSN: 0x0a0b0c},
			}
			frames = append(frames, p.Frame(&template))
			p.BadICRC = true
			frames = append(frames, p.Frame(&template))
		}
	}
	return frames
}

// fragments are a packet of RoCE over IPv4 and one over IPv6, each in two IP fragments, and each
// with a wrong ICRC once more.
func fragments(t *testing.T) (frames [][]byte) {
	t.Helper()
	for i, addr := range []string{"192.0.2.", "fd00::", "192.0.2.", "fd00::"} {
		path := wire.Path{
			Framing: wire.FramingV2IPv4, HopLimit: 64,
			Src: wire.GIDFromAddr(netip.MustParseAddr(addr + "1")),
			Dst: wire.GIDFromAddr(netip.MustParseAddr(addr + "2")),
		}
		ip := 20
		if i%2 == 1 {
			path.Framing, ip = wire.FramingV2IPv6, 40
		}
		var template wire.Template
		if err := template.Init(path); err != nil {
			t.Fatal(err)
		}
		p := roctest.Packet{Opcode: wire.RCSendOnly, Payload: bytes.Repeat([]byte{3}, 256)}
		frame := p.Frame(&template)
		if ip == 20 {
			binary.BigEndian.PutUint32(frame[18:], uint32(7+i)<<16) // it may be cut
		}
		end := len(frame) - wire.ICRCLen
		icrc := wire.ICRC(path.Framing, frame[14:end], nil) ^ uint32(i/2)
		binary.LittleEndian.PutUint32(frame[end:], icrc)
		frames = append(frames, cut(frame, ip, i)...)
	}
	return frames
}

// cut makes two IP fragments of a frame.
func cut(frame []byte, ip, id int) [][]byte {
	const first = 64
	head, data := frame[:14+ip], frame[14+ip:]
	var list [][]byte
	for i, part := range [][]byte{data[:first], data[first:]} {
		at, more := i*first, 1-i
		b := bytes.Clone(head)
		if ip == 40 {
			b[20] = 44
			b = append(b, 17, 0, byte(at>>8), byte(at|more), 0, 0, 0, byte(id))
			b = append(b, part...)
			binary.BigEndian.PutUint16(b[18:], uint16(len(b)-54))
			list = append(list, b)
			continue
		}
		b = append(b, part...)
		binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
		binary.BigEndian.PutUint16(b[20:], uint16(more<<13|at/8))
		b[24], b[25] = 0, 0
		sum := uint32(0)
		for j := 14; j < 34; j += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[j:]))
		}
		binary.BigEndian.PutUint16(b[24:], ^uint16(sum>>16+sum&0xffff))
		list = append(list, b)
	}
	return list
}

// TestScript: of every opcode in every framing, and of every capture, the script says what we do:
// the opcode, the verdict on the ICRC, the headers that Wireshark has no names for.
func TestScript(t *testing.T) {
	frames := everyOpcode(t)
	opcodes := len(frames)
	names, err := filepath.Glob(captures + "/*.pcap")
	if err != nil || len(names) < 50 {
		t.Fatal(len(names), err)
	}
	for i, name := range names {
		if i%10 != 0 && !strings.Contains(name, "corrupt") {
			continue // a CRC in Lua takes its time
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list, err := roctest.Pcap(file)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, list...)
	}
	frames = append(frames, fragments(t)...)
	fields := []string{
		"xroce.opcode", "xroce.icrc", "xroce.bth.fecn", "xroce.bth.becn", "xroce.xrceth.srqn",
		"xroce.feth.sel", "xroce.feth.plt", "xroce.selective.kept", "_ws.malformed",
	}
	var d dissect.Dissector
	var p dissect.Packet
	bad := 0
	for i, row := range tshark(t, frames, fields) {
		d.Dissect(dissect.LinkEthernet, frames[i], len(frames[i]), &p)
		want := fmt.Sprintf("%s;%s;0;0;", p.RoCE.BTH.Opcode, p.ICRC)
		if !p.IsRoCE { // a fragment that is not the last
			want = ";;;;"
		}
		if p.IsRoCE && p.RoCE.Spec.Has(wire.HasXRCETH) {
			want += "0x778899"
		}
		want += ";"
		if p.IsRoCE && p.RoCE.Spec.Has(wire.HasFETH) {
			want += "1;0x03"
		} else {
			want += ";"
		}
		want += ";"
		if p.IsRoCE && p.RoCE.BTH.Opcode == wire.SelectiveAck {
			want += strings.Repeat("07", 32)
		}
		if p.ICRC == dissect.Bad {
			bad++
		}
		if got := strings.Join(row[:8], ";"); got != want {
			t.Errorf("packet %d: the script says %s, we %s", i+1, got, want)
		}
	}
	if p.Fragments != 2 || p.ICRC != dissect.Bad {
		t.Error("the last packet was no fragment")
	}
	if bad < opcodes/2 {
		t.Errorf("%d packets of a wrong ICRC", bad)
	}
}

// TestScriptHeaders: headers behind those that Wireshark does not know have their values, and what
// messages say is named.
func TestScriptHeaders(t *testing.T) {
	var template wire.Template
	if err := template.Init(wire.Path{
		Framing: wire.FramingV2IPv4, HopLimit: 64,
		Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		Dst: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}); err != nil {
		t.Fatal(err)
	}
	reth := wire.RETH{VA: 0x1122, RKey: 0x33, DMALen: 8}
	control := msg.Control{Type: msg.TypeRTR, ID: 7, Len: 9, RKey: 5}
	frame := make([]byte, 40)
	(&msg.FrameHeader{Epoch: 3, Sequence: 4, Used: 16, Records: 1}).Put(frame)
	var frames [][]byte
	for _, p := range []roctest.Packet{
		{Opcode: wire.RCFlush, RETH: reth},
		{Opcode: wire.RCAtomicWrite, RETH: reth, Payload: make([]byte, 8)},
		{Opcode: wire.XRCWriteOnlyImm, RETH: reth, Imm: 0x44, Payload: make([]byte, 8)},
		{Opcode: wire.XRCAck, AETH: wire.AETH{Syndrome: 0x1f, MSN: 6}},
		{Opcode: wire.RCSendOnly, Payload: control.Put(make([]byte, control.Size()))},
		{Opcode: wire.RCWriteOnlyImm, RETH: reth, Payload: frame},
	} {
		frames = append(frames, p.Frame(&template))
	}
	want := []string{
		"0x0000000000001122;0x00000033;8;;;;;", "0x0000000000001122;0x00000033;8;;;;;",
		"0x0000000000001122;0x00000033;8;0x00000044;;;;", ";;;;6;;;",
		"0x0000000000000000;0x00000005;;;;RTR;7;", ";;;;;FRAME;;3",
	}
	for i, row := range tshark(t, frames, []string{
		"xroce.reth.va", "xroce.reth.r_key", "xroce.reth.dmalen", "xroce.immdt", "xroce.aeth.msn",
		"xroce.msg.type", "xroce.msg.id", "xroce.msg.epoch",
	}) {
		if got := strings.Join(row, ";"); got != want[i] {
			t.Errorf("packet %d: %s, want %s", i+1, got, want[i])
		}
	}
}

// TestInstall: the script is put where it is told to, in the place of an older one.
func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		path, err := Install(dir)
		if err != nil || path != filepath.Join(dir, Name) {
			t.Fatal(path, err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, Script()) {
			t.Fatal(len(got), err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	file := filepath.Join(dir, Name)
	if _, err := Install(file); err == nil {
		t.Error("a file is no directory")
	}
}
