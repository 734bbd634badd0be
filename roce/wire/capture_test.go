package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// captureFiles is the number of files in testdata/captures: two Soft-RoCE hosts
// of Linux 6.12.117 talking, *.B.pcap as the responder's side saw it.
const (
	captureFiles   = 96
	capturePackets = 1698
)

// readCapture returns the frames of a classic pcap file of Ethernet.
func readCapture(tb testing.TB, name string) [][]byte {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	const (
		magic, fileHeader, recordHeader = 0xa1b2c3d4, 24, 16
		ethernet                        = 1
	)
	le := binary.LittleEndian
	if len(data) < fileHeader || le.Uint32(data) != magic || le.Uint32(data[20:]) != ethernet {
		tb.Fatalf("%s is not a little-endian pcap file of Ethernet", name)
	}
	var frames [][]byte
	for data = data[fileHeader:]; len(data) != 0; {
		n, wire := int(le.Uint32(data[8:])), int(le.Uint32(data[12:]))
		if n != wire {
			tb.Fatalf("%s frame %d: %d of %d bytes captured", name, len(frames)+1, n, wire)
		}
		data = data[recordHeader:]
		frames = append(frames, data[:n:n])
		data = data[n:]
	}
	return frames
}

// captures goes through all capture files and fails when some are missing.
func captures(tb testing.TB, visit func(name string, frames [][]byte)) {
	tb.Helper()
	names, err := filepath.Glob("testdata/captures/*.pcap")
	if err != nil || len(names) != captureFiles {
		tb.Fatalf("found %d capture files (%v), want %d", len(names), err, captureFiles)
	}
	packets := 0
	for _, name := range names {
		frames := readCapture(tb, name)
		packets += len(frames)
		visit(name, frames)
	}
	if packets != capturePackets {
		tb.Errorf("read %d packets, want %d", packets, capturePackets)
	}
}

// captureLines returns what the capturing program said about each packet.
func captureLines(tb testing.TB, name string) []string {
	tb.Helper()
	base, side := strings.TrimSuffix(name, ".pcap"), "packets_A"
	if b, ok := strings.CutSuffix(base, ".B"); ok {
		base, side = b, "packets_B"
	}
	data, err := os.ReadFile(base + ".json")
	if err != nil {
		tb.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		tb.Fatalf("%s: %v", base, err)
	}
	var lines []string
	if err := json.Unmarshal(doc[side], &lines); err != nil {
		tb.Fatalf("%s %s: %v", base, side, err)
	}
	return lines
}

// describe prints a packet as the capturing program did.
func describe(p *Packet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s > %s %s qpn=0x%x psn=0x%06x", p.Src.Addr(), p.Dst.Addr(), p.Spec.Name,
		p.BTH.DestQP, uint32(p.BTH.PSN))
	add := func(on bool, format string, args ...any) {
		if on {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	has := func(h HeaderSet) bool { return p.Spec.Has(h) }
	add(p.BTH.SE, "se")
	add(p.BTH.AckReq, "ackreq")
	add(has(HasRETH), "va=0x%x rkey=0x%x dlen=%d", p.RETH().VA, p.RETH().RKey, p.RETH().DMALen)
	a := p.AtomicETH()
	add(has(HasAtomicETH), "va=0x%x rkey=0x%x swap_add=0x%x", a.VA, a.RKey, a.SwapAdd)
	add(p.BTH.Opcode == RCCmpSwap, "compare=0x%x", a.Compare)
	if has(HasAETH) {
		describeAETH(add, p.AETH())
	}
	add(has(HasAtomicAckETH), "orig=0x%x", p.AtomicAckETH().OrigData)
	add(has(HasImmDt), "imm=0x%x", p.ImmDt().Data)
	add(has(HasIETH), "ieth=0x%x", p.IETH().RKey)
	add(has(HasDETH), "qkey=0x%x srcqp=0x%x", p.DETH().QKey, p.DETH().SrcQP)
	add(p.PayloadLen() != 0, "payload=%d", p.PayloadLen())
	add(p.BTH.PadCnt != 0, "pad=%d", p.BTH.PadCnt)
	if p.BTH.DestQP == 1 {
		add(true, "MAD tid=%016x", binary.BigEndian.Uint64(p.Payload[8:]))
	}
	var icrc [ICRCLen]byte
	binary.LittleEndian.PutUint32(icrc[:], p.ICRC())
	add(true, "icrc=%x", icrc)
	add(!p.VerifyICRC(), "BAD")
	return b.String()
}

func describeAETH(add func(bool, string, ...any), h AETH) {
	s := h.Syndrome
	n, counted := Credits(s.Code())
	add(s.IsACK() && counted, "ACK credits=%d(%d)", s.Code(), n)
	add(s.IsACK() && !counted, "ACK credits=31(none)")
	add(s.IsRNRNAK(), "RNR_NAK timer=%d", s.Code())
	add(s.IsNAK(), "NAK %s", strings.Trim(strings.TrimPrefix(s.String(), "NAK"), "()"))
	add(true, "msn=%d", h.MSN)
}

var (
	lineTime = regexp.MustCompile(`^ *[0-9.]+ +`)
	lineMAD  = regexp.MustCompile(`MAD \S+ `)
)

// TestCaptures decodes every captured packet and compares all of its fields with
// the description the capturing program gave, which includes whether the ICRC is
// right: it is wrong in the two packets that were damaged on the wire, no other.
func TestCaptures(t *testing.T) {
	opcodes := map[Opcode]int{}
	var bad []string
	captures(t, func(name string, frames [][]byte) {
		lines := captureLines(t, name)
		if len(lines) != len(frames) {
			t.Errorf("%s: %d packets, %d lines", name, len(frames), len(lines))
			return
		}
		for i, frame := range frames {
			var p Packet
			if r := p.Decode(frame, nil); r != OK {
				t.Errorf("%s frame %d: %s, want ok", name, i+1, r)
				continue
			}
			opcodes[p.BTH.Opcode]++
			if good := slowICRC(p.Framing, frame[p.net:p.end-ICRCLen]) == p.ICRC(); good !=
				p.VerifyICRC() {
				t.Errorf("%s frame %d: VerifyICRC is %t, want %t", name, i+1, !good, good)
			}
			if !p.VerifyICRC() {
				bad = append(bad, fmt.Sprintf("%s %d", filepath.Base(name), i+1))
			}
			want := lineMAD.ReplaceAllString(lineTime.ReplaceAllString(lines[i], ""), "MAD ")
			if got := describe(&p); got != want {
				t.Errorf("%s frame %d:\n got %s\nwant %s", name, i+1, got, want)
			}
		}
	})
	want := []string{"corrupt_icrc_v4.B.pcap 3", "corrupt_payload_v4.B.pcap 3"}
	if fmt.Sprint(bad) != fmt.Sprint(want) {
		t.Errorf("wrong ICRC in %v, want %v", bad, want)
	}
	if len(opcodes) != 37 {
		t.Errorf("saw %d opcodes, want 37", len(opcodes))
	}
}

// reencode builds the packet again from its decoded fields.
func reencode(t *testing.T, p *Packet) []byte {
	t.Helper()
	var tmpl Template
	if err := tmpl.Init(pathOf(p)); err != nil {
		t.Fatal(err)
	}
	n := BTHLen + int(p.Spec.HeaderLen) + p.PayloadLen() + int(p.BTH.PadCnt)
	frame := bytes.Repeat([]byte{0xa5}, tmpl.FrameLen(n))
	b := frame[tmpl.Len():]
	p.BTH.Put(b)
	at := func(h Header) []byte { return b[p.Spec.Offsets[h]:] }
	for h := range Header(NumHeaders) {
		if !p.Spec.Has(1 << h) {
			continue
		}
		switch h {
		case HeaderDETH:
			p.DETH().Put(at(h))
		case HeaderRETH:
			p.RETH().Put(at(h))
		case HeaderAtomicETH:
			p.AtomicETH().Put(at(h))
		case HeaderAETH:
			p.AETH().Put(at(h))
		case HeaderAtomicAckETH:
			p.AtomicAckETH().Put(at(h))
		case HeaderImmDt:
			p.ImmDt().Put(at(h))
		case HeaderIETH:
			p.IETH().Put(at(h))
		case HeaderRDETH:
			p.RDETH().Put(at(h))
		case HeaderXRCETH:
			p.XRCETH().Put(at(h))
		case HeaderFETH:
			p.FETH().Put(at(h))
		}
	}
	m := BTHLen + int(p.Spec.HeaderLen)
	m += p.CopyPayload(b[m:])
	clear(b[m:n])
	return frame[:tmpl.Seal(frame, n, p.IPID)]
}

// TestCapturesReencode makes every captured packet again from its fields and
// wants the same bytes.
func TestCapturesReencode(t *testing.T) {
	damaged := 0
	captures(t, func(name string, frames [][]byte) {
		for i, frame := range frames {
			var p Packet
			if r := p.Decode(frame, nil); r != OK {
				t.Fatalf("%s frame %d: %s", name, i+1, r)
			}
			got, want := reencode(t, &p), frame[:p.end]
			if !p.VerifyICRC() { // the same but for the ICRC
				damaged++
				got, want = got[:p.end-ICRCLen], want[:p.end-ICRCLen]
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s frame %d:\n got %x\nwant %x", name, i+1, got, want)
			}
		}
	})
	if damaged != 2 {
		t.Errorf("%d damaged packets, want 2", damaged)
	}
}

// TestCapturesAreModest says what Soft-RoCE always did; see docs/wire.md.
func TestCapturesAreModest(t *testing.T) {
	captures(t, func(name string, frames [][]byte) {
		for i, frame := range frames {
			var p Packet
			p.Decode(frame, nil)
			raw := p.head[p.bth:]
			switch {
			case p.BTH.M, p.BTH.TVer != 0, p.BTH.PKey != DefaultPKey:
				t.Errorf("%s frame %d: %s", name, i+1, p.BTH)
			case raw[bthOffECN] != 0, raw[bthOffAck]&0x7f != 0:
				t.Errorf("%s frame %d: reserved bits in %x", name, i+1, raw[:BTHLen])
			case p.FlowLabel != 0, p.SrcPort < sportBase:
				t.Errorf("%s frame %d: flow label 0x%x, source port %d", name, i+1,
					p.FlowLabel, p.SrcPort)
			}
		}
	})
}
