package wire

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestOpcodeTableGolden(t *testing.T) {
	const name = "testdata/opcodes.golden"
	var got bytes.Buffer
	if err := WriteOpcodes(&got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the table is not %s (write it anew with -update):\n%s", name, got.Bytes())
	}
}

// TestOpcodeConstants: each constant names the row it should.
func TestOpcodeConstants(t *testing.T) {
	tests := map[Opcode]string{
		RCSendFirst: "RC_SEND_FIRST", RCSendMiddle: "RC_SEND_MIDDLE", RCSendLast: "RC_SEND_LAST",
		RCSendLastImm: "RC_SEND_LAST_IMM", RCSendOnly: "RC_SEND_ONLY",
		RCSendOnlyImm: "RC_SEND_ONLY_IMM", RCWriteFirst: "RC_WRITE_FIRST",
		RCWriteMiddle: "RC_WRITE_MIDDLE", RCWriteLast: "RC_WRITE_LAST",
		RCWriteLastImm: "RC_WRITE_LAST_IMM", RCWriteOnly: "RC_WRITE_ONLY",
		RCWriteOnlyImm: "RC_WRITE_ONLY_IMM", RCReadRequest: "RC_READ_REQUEST",
		RCReadRespFirst: "RC_READ_RESP_FIRST", RCReadRespMiddle: "RC_READ_RESP_MIDDLE",
		RCReadRespLast: "RC_READ_RESP_LAST", RCReadRespOnly: "RC_READ_RESP_ONLY",
		RCAck: "RC_ACK", RCAtomicAck: "RC_ATOMIC_ACK", RCCmpSwap: "RC_CMP_SWAP",
		RCFetchAdd: "RC_FETCH_ADD", RCSendLastInv: "RC_SEND_LAST_INV",
		RCSendOnlyInv: "RC_SEND_ONLY_INV", RCFlush: "RC_FLUSH",
		RCAtomicWrite: "RC_ATOMIC_WRITE",

		UCSendFirst: "UC_SEND_FIRST", UCSendMiddle: "UC_SEND_MIDDLE", UCSendLast: "UC_SEND_LAST",
		UCSendLastImm: "UC_SEND_LAST_IMM", UCSendOnly: "UC_SEND_ONLY",
		UCSendOnlyImm: "UC_SEND_ONLY_IMM", UCWriteFirst: "UC_WRITE_FIRST",
		UCWriteMiddle: "UC_WRITE_MIDDLE", UCWriteLast: "UC_WRITE_LAST",
		UCWriteLastImm: "UC_WRITE_LAST_IMM", UCWriteOnly: "UC_WRITE_ONLY",
		UCWriteOnlyImm: "UC_WRITE_ONLY_IMM",

		RDSendFirst: "RD_SEND_FIRST", RDSendMiddle: "RD_SEND_MIDDLE", RDSendLast: "RD_SEND_LAST",
		RDSendLastImm: "RD_SEND_LAST_IMM", RDSendOnly: "RD_SEND_ONLY",
		RDSendOnlyImm: "RD_SEND_ONLY_IMM", RDWriteFirst: "RD_WRITE_FIRST",
		RDWriteMiddle: "RD_WRITE_MIDDLE", RDWriteLast: "RD_WRITE_LAST",
		RDWriteLastImm: "RD_WRITE_LAST_IMM", RDWriteOnly: "RD_WRITE_ONLY",
		RDWriteOnlyImm: "RD_WRITE_ONLY_IMM", RDReadRequest: "RD_READ_REQUEST",
		RDReadRespFirst: "RD_READ_RESP_FIRST", RDReadRespMiddle: "RD_READ_RESP_MIDDLE",
		RDReadRespLast: "RD_READ_RESP_LAST", RDReadRespOnly: "RD_READ_RESP_ONLY",
		RDAck: "RD_ACK", RDAtomicAck: "RD_ATOMIC_ACK", RDCmpSwap: "RD_CMP_SWAP",
		RDFetchAdd: "RD_FETCH_ADD", RDResync: "RD_RESYNC",

		UDSendOnly: "UD_SEND_ONLY", UDSendOnlyImm: "UD_SEND_ONLY_IMM", CNP: "CNP",

		XRCSendFirst: "XRC_SEND_FIRST", XRCSendMiddle: "XRC_SEND_MIDDLE",
		XRCSendLast: "XRC_SEND_LAST", XRCSendLastImm: "XRC_SEND_LAST_IMM",
		XRCSendOnly: "XRC_SEND_ONLY", XRCSendOnlyImm: "XRC_SEND_ONLY_IMM",
		XRCWriteFirst: "XRC_WRITE_FIRST", XRCWriteMiddle: "XRC_WRITE_MIDDLE",
		XRCWriteLast: "XRC_WRITE_LAST", XRCWriteLastImm: "XRC_WRITE_LAST_IMM",
		XRCWriteOnly: "XRC_WRITE_ONLY", XRCWriteOnlyImm: "XRC_WRITE_ONLY_IMM",
		XRCReadRequest: "XRC_READ_REQUEST", XRCReadRespFirst: "XRC_READ_RESP_FIRST",
		XRCReadRespMiddle: "XRC_READ_RESP_MIDDLE", XRCReadRespLast: "XRC_READ_RESP_LAST",
		XRCReadRespOnly: "XRC_READ_RESP_ONLY", XRCAck: "XRC_ACK",
		XRCAtomicAck: "XRC_ATOMIC_ACK", XRCCmpSwap: "XRC_CMP_SWAP",
		XRCFetchAdd: "XRC_FETCH_ADD", XRCSendLastInv: "XRC_SEND_LAST_INV",
		XRCSendOnlyInv: "XRC_SEND_ONLY_INV",

		SelectiveAck: "OWN_SELECTIVE_ACK", SendOnlyAck: "OWN_SEND_ONLY_ACK",
		SendOnlyImmAck: "OWN_SEND_ONLY_IMM_ACK", WriteOnlyAck: "OWN_WRITE_ONLY_ACK",
		WriteOnlyImmAck: "OWN_WRITE_ONLY_IMM_ACK",
	}
	for op, want := range tests {
		if op.String() != want {
			t.Errorf("opcode 0x%02x is %s, want %s", uint8(op), op, want)
		}
	}
	known := 0
	for range Opcodes() {
		known++
	}
	if known != len(tests) {
		t.Errorf("the table knows %d opcodes, the constants are %d", known, len(tests))
	}
}

// TestOpcodeSpecs checks what must hold for each row, known or not.
func TestOpcodeSpecs(t *testing.T) {
	for i := range 256 {
		op := Opcode(i)
		s := op.Spec()
		if int(s.Service) != i>>5 {
			t.Errorf("%s: service %s", op, s.Service)
		}
		sum := 0
		for h := range Header(NumHeaders) {
			off := int(s.Offsets[h])
			if s.Has(1<<h) != (off != 0) {
				t.Errorf("%s: %s at offset %d", op, h, off)
			}
			if off != 0 {
				if off != BTHLen+sum {
					t.Errorf("%s: %s at offset %d, want %d", op, h, off, BTHLen+sum)
				}
				sum += h.Len()
			}
		}
		if int(s.HeaderLen) != sum || sum%4 != 0 {
			t.Errorf("%s: headers of %d bytes, sum is %d", op, s.HeaderLen, sum)
		}
		if s.Known {
			checkClass(t, op, s)
		} else if s.Name != "" || s.Class != 0 || s.Headers != 0 ||
			!strings.HasPrefix(op.String(), "UNKNOWN_0x") {
			t.Errorf("unknown opcode 0x%02x has a meaning: %+v", i, s)
		}
	}
}

// TestServiceOpcode: the operation keeps its name when it moves to another
// service, and moves exactly where the table has it.
func TestServiceOpcode(t *testing.T) {
	tests := []struct {
		service Service
		base    Opcode
		want    Opcode
		ok      bool
	}{
		{ServiceUC, RCSendOnly, UCSendOnly, true},
		{ServiceUC, RCWriteOnlyImm, UCWriteOnlyImm, true},
		{ServiceUC, RCReadRequest, 0, false},
		{ServiceUC, RCSendOnlyInv, 0, false},
		{ServiceUD, RCSendOnly, UDSendOnly, true},
		{ServiceUD, RCSendOnlyImm, UDSendOnlyImm, true},
		{ServiceUD, RCSendFirst, 0, false},
		{ServiceUD, RCWriteOnly, 0, false},
		{ServiceXRC, RCSendOnlyInv, XRCSendOnlyInv, true},
		{ServiceXRC, RCFetchAdd, XRCFetchAdd, true},
		{ServiceXRC, RCAck, XRCAck, true},
		{ServiceXRC, RCFlush, 0, false},
		{ServiceXRC, RCAtomicWrite, 0, false},
		{ServiceRC, XRCReadRequest, RCReadRequest, true},
		{ServiceRC, UDSendOnly, RCSendOnly, true},
		{ServiceRC, RDResync, 0, false},
		{ServiceRC, CNP, 0, false},
		{ServiceCNP, RCSendMiddle, 0, false},
		{ServiceCNP, CNP, CNP, true},
		{ServiceXRC, 0x15, 0, false},
		{8, RCSendOnly, 0, false},
	}
	for _, tt := range tests {
		got, ok := tt.service.Opcode(tt.base)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s in %s: %s, %t, want %s, %t", tt.base, tt.service, got, ok, tt.want, tt.ok)
		}
	}
	for base, from := range Opcodes() {
		_, name, _ := strings.Cut(from.Name, "_")
		for s := range Service(8) {
			op, ok := s.Opcode(base)
			want := s.String() + "_" + name
			if base == CNP {
				want = "CNP"
			}
			if ok && (op.String() != want || op.Spec().Service != s) {
				t.Errorf("%s in %s is %s", base, s, op)
			}
			if !ok && s <= ServiceXRC && hasOpcode(want) && base != CNP {
				t.Errorf("%s in %s is missing", base, s)
			}
		}
	}
}

// hasOpcode reports whether the table has a row of that name.
func hasOpcode(name string) bool {
	for _, s := range Opcodes() {
		if s.Name == name {
			return true
		}
	}
	return false
}

// TestXRCMirrorsRC: XRC has what RC has up to 0xB7; its requests carry an XRCETH
// before everything else and its responses none.
func TestXRCMirrorsRC(t *testing.T) {
	for i := range 0x18 {
		rc, xrc := Opcode(i).Spec(), Opcode(0xA0+i).Spec()
		headers := rc.Headers
		if rc.Is(ClassRequest) {
			headers |= HasXRCETH
			if off := xrc.Offsets[HeaderXRCETH]; off != BTHLen {
				t.Errorf("0x%02x has its XRCETH at %d, want %d", 0xA0+i, off, BTHLen)
			}
		}
		if xrc.Known != rc.Known || xrc.Headers != headers || xrc.Payload != rc.Payload ||
			xrc.Class != rc.Class || xrc.Known && xrc.Name != "X"+rc.Name {
			t.Errorf("0x%02x is %+v, want RC's %+v", 0xA0+i, xrc, rc)
		}
	}
}

// TestResponses: each request of a reliable service, and nothing else, names a
// response of the same service; ours are those of RC.
func TestResponses(t *testing.T) {
	tests := map[Opcode]Opcode{
		RCSendFirst: RCAck, RCSendOnlyInv: RCAck, RCWriteLastImm: RCAck,
		RCReadRequest: RCReadRespOnly, RCCmpSwap: RCAtomicAck, RCFetchAdd: RCAtomicAck,
		RCFlush: RCReadRespOnly, RCAtomicWrite: RCReadRespOnly,
		SendOnlyAck: RCAck, WriteOnlyImmAck: RCAck,
		XRCSendOnly: XRCAck, XRCReadRequest: XRCReadRespOnly, XRCCmpSwap: XRCAtomicAck,
		RDResync: RDAck, RCAck: 0, RCReadRespOnly: 0, UCSendOnly: 0, UDSendOnly: 0, CNP: 0,
	}
	for op, want := range tests {
		if got := op.Spec().Response; got != want {
			t.Errorf("%s is answered by %s, want %s", op, got, want)
		}
	}
	for op, s := range Opcodes() {
		service := s.Service
		if service == ServiceMfr {
			service = ServiceRC
		}
		reliable := service == ServiceRC || service == ServiceRD || service == ServiceXRC
		if (s.Response != 0) != (reliable && s.Is(ClassRequest)) {
			t.Errorf("%s is answered by %s", op, s.Response)
		}
		a := s.Response.Spec()
		if s.Response != 0 && (!a.Is(ClassResponse|ClassOnly) || a.Service != service) {
			t.Errorf("%s is answered by %s, a %s of %s", op, s.Response, a.Class, a.Service)
		}
	}
}

func checkClass(t *testing.T, op Opcode, s *OpcodeSpec) {
	t.Helper()
	if op != CNP && s.Is(ClassRequest) == s.Is(ClassResponse) {
		t.Errorf("%s is %s: want either request or response", op, s.Class)
	}
	if s.Is(ClassImm) != s.Has(HasImmDt) || s.Is(ClassInv) != s.Has(HasIETH) ||
		s.Is(ClassFlush) != s.Has(HasFETH) {
		t.Errorf("%s is %s with %s", op, s.Class, s.Headers)
	}
	middle := s.Class&ClassMiddle != 0
	if middle == (s.Class&ClassOnly != 0) {
		t.Errorf("%s is %s: want first, last or middle", op, s.Class)
	}
	switch {
	case op == SelectiveAck:
		want(t, op, s.Payload, Payload32)
	case s.Is(ClassAck) || s.Is(ClassAtomic) || s.Is(ClassFlush):
		want(t, op, s.Payload, PayloadNone)
	case middle, s.Class&ClassOnly == ClassFirst:
		want(t, op, s.Payload, PayloadFull)
	case s.Class&ClassOnly == ClassLast:
		want(t, op, s.Payload, PayloadPartial)
	}
	if s.Is(ClassReceive) != s.Is(ClassSolicited) ||
		s.Is(ClassReceive) != (s.Is(ClassLast) && (s.Is(ClassSend) || s.Is(ClassImm))) {
		t.Errorf("%s is %s: receive work requests are consumed by the end of SENDs and of "+
			"WRITEs with immediate", op, s.Class)
	}
}

func want(t *testing.T, op Opcode, got, want PayloadRule) {
	t.Helper()
	if got != want {
		t.Errorf("%s: payload %s, want %s", op, got, want)
	}
}

func TestPayloadRule(t *testing.T) {
	tests := []struct {
		rule PayloadRule
		ok   []int
		bad  []int
	}{
		{PayloadNone, []int{0}, []int{-1, 1, 1024}},
		{PayloadFull, []int{1024}, []int{-1, 0, 1023, 1025}},
		{PayloadPartial, []int{1, 1024}, []int{-1, 0, 1025}},
		{PayloadAny, []int{0, 1, 1024}, []int{-1, 1025}},
		{Payload8, []int{8}, []int{-1, 0, 7, 9}},
		{Payload16, []int{16}, []int{-1, 0, 15, 17}},
		{Payload32, []int{32}, []int{-1, 0, 31, 33}},
	}
	for _, tt := range tests {
		for _, n := range tt.ok {
			if !tt.rule.Allows(n, 1024) {
				t.Errorf("%s does not allow %d", tt.rule, n)
			}
		}
		for _, n := range tt.bad {
			if tt.rule.Allows(n, 1024) {
				t.Errorf("%s allows %d", tt.rule, n)
			}
		}
	}
	if len(tests) != numPayloadRules {
		t.Errorf("%d rules tested, want %d", len(tests), numPayloadRules)
	}
}

// TestFrameSizes compares the frame sizes without payload that other
// implementations show, untagged over IPv4.
func TestFrameSizes(t *testing.T) {
	tests := []struct {
		size    int
		payload int
		ops     []Opcode
	}{
		{58, 0, []Opcode{RCSendFirst, RCSendOnly, RCWriteMiddle, RCWriteLast, RCReadRespMiddle}},
		{62, 0, []Opcode{RCSendOnlyImm, RCSendLastInv, RCAck, RCReadRespFirst, RCReadRespOnly}},
		{66, 0, []Opcode{UDSendOnly}},
		{70, 0, []Opcode{UDSendOnlyImm, RCAtomicAck}},
		{74, 0, []Opcode{RCReadRequest, RCWriteFirst, RCWriteOnly}},
		{74, 16, []Opcode{CNP}},
		{78, 0, []Opcode{RCWriteOnlyImm, RCFlush}},
		{82, 8, []Opcode{RCAtomicWrite}},
		{86, 0, []Opcode{RCCmpSwap, RCFetchAdd}},
		{322, 256, []Opcode{UDSendOnly}},
	}
	var tmpl Template
	if err := tmpl.Init(testPath(FramingV2IPv4)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		for _, op := range tt.ops {
			got := tmpl.Len() + op.Spec().TransportLen(tt.payload)
			if got != tt.size {
				t.Errorf("%s with %d bytes of payload: %d bytes, want %d", op, tt.payload, got,
					tt.size)
			}
		}
	}
}

// TestWithAck: an acknowledge rides on a SEND or WRITE of one packet, whose opcode has the headers
// and the properties of that without it, and on nothing else.
func TestWithAck(t *testing.T) {
	riding := 0
	for op, s := range Opcodes() {
		own, ok := op.WithAck()
		if !ok {
			continue
		}
		riding++
		o := own.Spec()
		if o.Headers != s.Headers|HasAETH|HasAPSN || o.Class != s.Class ||
			o.Payload != s.Payload || !s.Is(ClassOnly) {
			t.Errorf("%s: %s, %s", own, o.Headers, o.Class)
		}
	}
	if riding != 4 {
		t.Errorf("acknowledges ride on %d requests", riding)
	}
	b := make([]byte, APSNLen)
	APSN{PSN: 0xfffffe}.Put(b)
	h, err := ParseAPSN(b)
	if _, short := ParseAPSN(b[1:]); err != nil || h.PSN != 0xfffffe || short == nil || b[0] != 0 {
		t.Errorf("% x is %s, %v", b, h, err)
	}
}
