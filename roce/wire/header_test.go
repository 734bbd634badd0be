package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A codec is one header type as the tests of all headers see it.
type codec struct {
	name     string
	len      int
	reserved string // hexadecimal: bits sent as zero and ignored on receive
	golden   string // hexadecimal: bytes of value
	value    header
	text     string // value.String()
	parse    func([]byte) (header, error)
}

type header interface {
	Put([]byte)
	String() string
}

// parser turns a Parse function into one that returns the interface.
func parser[H header](parse func([]byte) (H, error)) func([]byte) (header, error) {
	return func(b []byte) (header, error) { return parse(b) }
}

// codecs has every header. The golden bytes of BTH, DETH, RETH, AETH, AtomicETH,
// AtomicAckETH, ImmDt and IETH come from testdata/captures.
var codecs = []codec{
	{
		"LRH", LRHLen, "000c0000 f8000000", "50930002 00080001",
		LRH{VL: 5, SL: 9, LNH: LNHGlobal, DLID: 2, PktLen: 8, SLID: 1},
		"lrh.vl=5 lver=0 sl=9 lnh=3 dlid=0x0002 pktlen=8 slid=0x0001", parser(ParseLRH),
	},
	{
		"GRH", GRHLen, "", "6ab12345 00181b40 fe80000000000000000000fffe000001" +
			"fd770000000000000000000000000002",
		GRH{
			IPVer: 6, TClass: 0xab, FlowLabel: 0x12345, PayLen: 24, NxtHdr: GRHNxtHdrIBA,
			HopLmt: 64, SGID: LinkLocalGID([6]byte{2, 0, 0, 0, 0, 1}),
			DGID: GID{0: 0xfd, 1: 0x77, 15: 2},
		},
		"grh.ipver=6 tclass=171 flowlabel=0x12345 paylen=24 nxthdr=0x1b hoplmt=64 " +
			"sgid=fe80::ff:fe00:1 dgid=fd77::2", parser(ParseGRH),
	},
	{
		"BTH", BTHLen, "00000000 3f000000 7f000000", "04b0ffff 00000018 8028a721",
		BTH{
			Opcode: RCSendOnly, SE: true, PadCnt: 3, PKey: 0xffff, DestQP: 0x18, AckReq: true,
			PSN: 0x28a721,
		},
		"bth.opcode=RC_SEND_ONLY se=1 m=0 padcnt=3 tver=0 p_key=0xffff fecn=0 becn=0 " +
			"destqp=0x000018 a=1 psn=0x28a721", parser(ParseBTH),
	},
	{
		"DETH", DETHLen, "00000000 ff000000", "111100f1 0000005c",
		DETH{QKey: 0x111100f1, SrcQP: 0x5c},
		"deth.q_key=0x111100f1 srcqp=0x00005c",
		parser(ParseDETH),
	},
	{
		"RETH", RETHLen, "", "00007f8e7b505000 00005eb0 0000180a",
		RETH{VA: 0x7f8e7b505000, RKey: 0x5eb0, DMALen: 6154},
		"reth.va=0x7f8e7b505000 r_key=0x00005eb0 dmalen=6154", parser(ParseRETH),
	},
	{
		"AETH", AETHLen, "80000000", "62000002",
		AETH{NAKRemoteAccessError, 2},
		"aeth.syndrome=NAK(remote_access_error) msn=2", parser(ParseAETH),
	},
	{
		"AtomicETH", AtomicETHLen, "",
		"00007f8e7b506040 00001ce3 1122334455667788 88497b3e0c5f5a83",
		AtomicETH{0x7f8e7b506040, 0x1ce3, 0x1122334455667788, 0x88497b3e0c5f5a83},
		"atomiceth.va=0x7f8e7b506040 r_key=0x00001ce3 swapdt=0x1122334455667788 " +
			"cmpdt=0x88497b3e0c5f5a83", parser(ParseAtomicETH),
	},
	{
		"AtomicAckETH", AtomicAckETHLen, "", "0000000000000579",
		AtomicAckETH{0x579},
		"atomicacketh.origremdt=0x579", parser(ParseAtomicAckETH),
	},
	{
		"ImmDt", ImmDtLen, "", "55aa0001",
		ImmDt{0x55aa0001},
		"immdt=0x55aa0001",
		parser(ParseImmDt),
	},
	{"IETH", IETHLen, "", "080003f8", IETH{0x80003f8}, "ieth=0x080003f8", parser(ParseIETH)},
	{
		"RDETH", RDETHLen, "ff000000", "00123456",
		RDETH{0x123456},
		"rdeth.eecnxt=0x123456",
		parser(ParseRDETH),
	},
	{
		"XRCETH", XRCETHLen, "ff000000", "00abcdef",
		XRCETH{0xabcdef},
		"xrceth.srqn=0xabcdef",
		parser(ParseXRCETH),
	},
	{
		"FETH", FETHLen, "ffffffc0", "00000012",
		FETH{SEL: FlushRegion, PLT: FlushPersistent},
		"feth.sel=1 plt=0x2", parser(ParseFETH),
	},
	{"RWH", RWHLen, "ffff0000", "00000806", RWH{0x0806}, "rwh.etype=0x0806", parser(ParseRWH)},
}

func TestHeaderGolden(t *testing.T) {
	for _, c := range codecs {
		b := unhex(t, c.golden)
		if len(b) != c.len {
			t.Fatalf("%s: golden bytes have length %d, want %d", c.name, len(b), c.len)
		}
		got, err := c.parse(b)
		if err != nil || got != c.value {
			t.Errorf("%s: Parse(%x) = %v, %v, want %v", c.name, b, got, err, c.value)
		}
		out := bytes.Repeat([]byte{0xff}, c.len+1)
		c.value.Put(out)
		if !bytes.Equal(out[:c.len], b) || out[c.len] != 0xff {
			t.Errorf("%s: Put wrote %x, want %x and nothing behind it", c.name, out, b)
		}
		if s := c.value.String(); s != c.text {
			t.Errorf("%s: String\n got %s\nwant %s", c.name, s, c.text)
		}
	}
}

func TestHeaderPrefixes(t *testing.T) {
	for _, c := range codecs {
		b := unhex(t, c.golden)
		for n := range c.len {
			if _, err := c.parse(b[:n:n]); !errors.Is(err, ErrShort) {
				t.Errorf("%s: Parse of %d bytes: %v, want ErrShort", c.name, n, err)
			}
		}
		if _, err := c.parse(append(b, 0xff)); err != nil {
			t.Errorf("%s: Parse with a byte behind the header: %v", c.name, err)
		}
	}
}

// TestHeaderReservedBits: reserved bits are ignored on receive and sent as zero,
// every other bit is carried.
func TestHeaderReservedBits(t *testing.T) {
	for _, c := range codecs {
		reserved := make([]byte, c.len)
		copy(reserved, unhex(t, c.reserved))
		for i := range c.len * 8 {
			b := make([]byte, c.len)
			b[i/8] = 0x80 >> (i % 8)
			isReserved := b[i/8]&reserved[i/8] != 0
			h, err := c.parse(b)
			if err != nil {
				t.Fatal(err)
			}
			out := make([]byte, c.len)
			h.Put(out)
			switch {
			case isReserved && !bytes.Equal(out, make([]byte, c.len)):
				t.Errorf("%s: reserved bit %d comes back: %x", c.name, i, out)
			case !isReserved && !bytes.Equal(out, b):
				t.Errorf("%s: bit %d: %x came back as %x", c.name, i, b, out)
			}
		}
	}
}

// TestHeaderRoundTrip: any bytes but for the reserved bits survive parse and Put.
func TestHeaderRoundTrip(t *testing.T) {
	for _, c := range codecs {
		reserved := make([]byte, c.len)
		copy(reserved, unhex(t, c.reserved))
		rapid.Check(t, func(t *rapid.T) {
			b := rapid.SliceOfN(rapid.Byte(), c.len, c.len).Draw(t, "bytes")
			h, err := c.parse(b)
			if err != nil {
				t.Fatal(err)
			}
			out := make([]byte, c.len)
			h.Put(out)
			for i := range b {
				if out[i] != b[i]&^reserved[i] {
					t.Fatalf("%s: %x came back as %x", c.name, b, out)
				}
			}
			if again, _ := c.parse(out); again != h {
				t.Fatalf("%s: %v came back as %v", c.name, h, again)
			}
		})
	}
}

// TestPutMasks: values too large for their field do not spill into others.
func TestPutMasks(t *testing.T) {
	tests := []struct {
		name string
		h    header
		want string
	}{
		{
			"BTH",
			BTH{PadCnt: 0xff, TVer: 0xff, DestQP: 1<<32 - 1, PSN: 1<<32 - 1},
			"003f0000 00ffffff 00ffffff",
		},
		{
			"LRH",
			LRH{VL: 0xff, LVer: 0xff, SL: 0xff, LNH: 0xff, PktLen: 0xffff},
			"fff30000 07ff0000",
		},
		{"GRH", GRH{FlowLabel: 1<<32 - 1}, "000fffff" + strings.Repeat("00", 36)},
		{"DETH", DETH{SrcQP: 1<<32 - 1}, "0000000000ffffff"},
		{"AETH", AETH{Syndrome: 0xff, MSN: 1<<32 - 1}, "7fffffff"},
		{"RDETH", RDETH{1<<32 - 1}, "00ffffff"},
		{"XRCETH", XRCETH{1<<32 - 1}, "00ffffff"},
		{"FETH", FETH{SEL: 0xff, PLT: 0xff}, "0000003f"},
	}
	for _, tt := range tests {
		want := unhex(t, tt.want)
		got := make([]byte, len(want))
		tt.h.Put(got)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got %x, want %x", tt.name, got, want)
		}
	}
}

// TestBTHPatches: the in-place patches change their field, and preserve all
// other bits, reserved ones included.
func TestBTHPatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), BTHLen, BTHLen).Draw(t, "bytes")
		psn := PSN(rapid.Uint32Max(max24).Draw(t, "psn"))
		qpn := rapid.Uint32Max(max24).Draw(t, "qpn")
		on := rapid.Bool().Draw(t, "ackreq")
		got := bytes.Clone(b)
		SetBTHPSN(got, psn)
		SetBTHAckReq(got, on)
		SetBTHDestQP(got, qpn)
		h, _ := ParseBTH(got)
		if h.PSN != psn || h.AckReq != on || h.DestQP != qpn {
			t.Fatalf("patched to %s, want psn 0x%06x, a %t, destqp 0x%06x", h, psn, on, qpn)
		}
		want := bytes.Clone(b)
		binary.BigEndian.PutUint32(want[4:], uint32(b[4])<<24|qpn)
		binary.BigEndian.PutUint32(want[8:], uint32(b[8]&0x7f)<<24|uint32(psn))
		if on {
			want[8] |= 0x80
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("patched %x to %x, want %x", b, got, want)
		}
	})
}

func TestHeaderAllocs(t *testing.T) {
	b := make([]byte, GRHLen)
	got := testing.AllocsPerRun(100, func() {
		bth, _ := ParseBTH(b)
		bth.Put(b)
		reth, _ := ParseRETH(b)
		reth.Put(b)
		atomic, _ := ParseAtomicETH(b)
		atomic.Put(b)
		aeth, _ := ParseAETH(b)
		aeth.Put(b)
		grh, _ := ParseGRH(b)
		grh.Put(b)
		lrh, _ := ParseLRH(b)
		lrh.Put(b)
		if _, err := ParseBTH(b[:3]); err == nil {
			t.Error("no error for three bytes")
		}
	})
	if got != 0 {
		t.Errorf("%g allocations, want 0", got)
	}
}
