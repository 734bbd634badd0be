package wire

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tsharkFields are what tshark is asked about each packet; tsharkLine says what
// it should answer.
var tsharkFields = []string{
	"infiniband.bth.opcode", "infiniband.bth.destqp",
	"infiniband.bth.psn", "infiniband.bth.padcnt", "infiniband.bth.p_key", "infiniband.reth.r_key",
	"infiniband.reth.dmalen", "infiniband.aeth.msn", "infiniband.deth.srcqp",
	"infiniband.atomicacketh.origremdt", "infiniband.invariant.crc",
}

// tsharkLine prints a packet as tshark does. Headers that are not there print
// as nothing. tshark knows no XRCETH.
func tsharkLine(p *Packet) string {
	opt := func(h HeaderSet, format string, v any) string {
		if !p.Spec.Has(h) {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	var icrc [ICRCLen]byte
	binary.LittleEndian.PutUint32(icrc[:], p.ICRC())
	rkey := opt(HasRETH, "0x%08x", p.RETH().RKey) + // one name for two headers
		opt(HasAtomicETH, "0x%08x", p.AtomicETH().RKey)
	return strings.Join([]string{
		fmt.Sprint(uint8(p.BTH.Opcode)), fmt.Sprintf("0x%06x", p.BTH.DestQP),
		fmt.Sprint(uint32(p.BTH.PSN)), fmt.Sprint(p.BTH.PadCnt), fmt.Sprint(p.BTH.PKey),
		rkey, opt(HasRETH, "%d", p.RETH().DMALen),
		opt(HasAETH, "%d", p.AETH().MSN), opt(HasDETH, "0x%08x", p.DETH().SrcQP),
		opt(HasAtomicAckETH, "%d", p.AtomicAckETH().OrigData), fmt.Sprintf("0x%x", icrc),
	}, ",")
}

// pcap is a capture file of Ethernet frames.
func pcap(frames [][]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 4<<16|2)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, 65535)
	b = le.AppendUint32(b, 1)
	for _, f := range frames {
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(b, uint32(len(f)))
		b = le.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

// TestTshark lets tshark decode a packet of each opcode that it knows, in each
// Ethernet framing.
func TestTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	var frames [][]byte
	var want []string
	for _, f := range ethFramings {
		for op, spec := range Opcodes() {
			if spec.Service == ServiceXRC || op == CNP || op == RCFlush || op == RCAtomicWrite ||
				spec.Service == ServiceRD || spec.Service == ServiceMfr {
				continue // not in tshark 4.0; of RD it reads the DETH 8 bytes too late
			}
			payloads := legalPayloads(op) // of empty UD packets tshark forgets the ICRC
			frame := build(t, f, op, payloads[len(payloads)/2])
			var p Packet
			if r := p.Decode(frame, nil); r != OK {
				t.Fatal(r)
			}
			frames = append(frames, frame)
			want = append(want, tsharkLine(&p))
		}
	}
	name := filepath.Join(t.TempDir(), "opcodes.pcap")
	if err := os.WriteFile(name, pcap(frames), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-r", name, "--disable-heuristic", "rpcrdma_infiniband", "-T", "fields",
		"-E", "separator=,",
	}
	for _, f := range tsharkFields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command(tshark, args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(got) != len(want) {
		t.Fatalf("tshark printed %d lines, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("packet %d:\n tshark %s\n ours   %s", i+1, got[i], want[i])
		}
	}
}
