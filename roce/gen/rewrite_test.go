package gen_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"xroce/roce/gen"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestRewrite: each packet of each capture goes another way, to another queue pair and to other
// memory, is right again, and has the payload that it had.
func TestRewrite(t *testing.T) {
	names, err := filepath.Glob("../wire/testdata/captures/*.pcap")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d captures, %v", len(names), err)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := roctest.Pcap(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, v6 := range []bool{false, true} {
			rewrite(t, frames, v6)
		}
	}
}

func rewrite(t *testing.T, frames [][]byte, v6 bool) {
	t.Helper()
	qp, psn, key, va := uint32(0x123456), wire.PSN(0xfffffe), uint32(77), uint64(1<<40)
	r, err := gen.NewRewriter(gen.Rewrite{
		Path: path(v6, true), DestQP: &qp, PSN: &psn, RKey: &key, VA: &va,
	}, 9018)
	if err != nil {
		t.Fatal(err)
	}
	var was, is wire.Packet
	first := map[uint32]*wire.Packet{} // to each queue pair
	out := make([]byte, 9018)
	for _, frame := range frames {
		if was.Decode(frame, nil) != wire.OK || !was.VerifyICRC() {
			continue
		}
		n, err := r.Write(out, &was)
		if err != nil || n == 0 || is.Decode(out[:n], nil) != wire.OK || !is.VerifyICRC() {
			t.Fatalf("%d bytes, %v of %x", n, err, frame)
		}
		if !bytes.Equal(was.Payload, is.Payload) || is.BTH.DestQP != qp || is.Tags.VLAN() != 5 ||
			is.BTH.Opcode != was.BTH.Opcode || is.TClass != was.TClass {
			t.Fatalf("%s became %s", roctest.Describe(&was), roctest.Describe(&is))
		}
		if was.Spec.Has(wire.HasRETH) && is.RETH().RKey != key {
			t.Fatalf("key: %+v", is.RETH())
		}
		if !was.Spec.Is(wire.ClassRequest) {
			if is.BTH.PSN != was.BTH.PSN {
				t.Fatalf("the PSN of an answer: %#x", is.BTH.PSN)
			}
			continue
		}
		begin := first[was.BTH.DestQP]
		if begin == nil {
			begin = new(wire.Packet)
			*begin = was
			begin.BTH = was.BTH
			first[was.BTH.DestQP] = begin
		}
		if is.BTH.PSN != psn.Add(uint32(was.BTH.PSN.Sub(uint32(begin.BTH.PSN)))) {
			t.Fatalf("PSN %#x of %#x", is.BTH.PSN, was.BTH.PSN)
		}
	}
}

// TestRewriteQPs: single queue pairs get other numbers, wherever they are named; what is not
// said stays; and addresses keep their distance.
func TestRewriteQPs(t *testing.T) {
	va := uint64(1000)
	r, err := gen.NewRewriter(gen.Rewrite{
		Path: path(false, false), QPs: map[uint32]uint32{0x11: 0x22}, VA: &va,
	}, maxFrame)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, maxFrame)
	var was, is wire.Packet
	for i, ops := range []gen.RoCE{
		{Opcodes: []wire.Opcode{wire.RCWriteOnly}, DestQP: 0x11, VA: 1 << 60, RKey: 5, PSN: 9},
		{Opcodes: []wire.Opcode{wire.RCWriteOnly}, DestQP: 0x11, VA: 1<<60 + 24, RKey: 5, PSN: 9},
		{Opcodes: []wire.Opcode{wire.UDSendOnly}, DestQP: 0x12, SrcQP: 0x11, QKey: 6, PSN: 9},
	} {
		f := flow(t, gen.Config{
			Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(150), RoCE: ops,
		})
		frame := make([]byte, maxFrame)
		was.Decode(frame[:f.Next(frame, 1)], nil)
		n, err := r.Write(out, &was)
		if err != nil || is.Decode(out[:n], nil) != wire.OK || is.BTH.PSN != 9 {
			t.Fatalf("%d: %v, %+v", i, err, is.BTH)
		}
		good := is.BTH.DestQP == 0x22 && is.RETH().RKey == 5 && is.RETH().VA == 1000+uint64(i)*24
		if i == 2 {
			good = is.BTH.DestQP == 0x12 && is.DETH() == wire.DETH{QKey: 6, SrcQP: 0x22}
		}
		if !good {
			t.Errorf("%d: %s", i, roctest.Describe(&is))
		}
	}
	bad := uint32(1 << 24)
	if _, err := gen.NewRewriter(gen.Rewrite{Path: path(false, false), DestQP: &bad},
		maxFrame); !errors.Is(err, gen.ErrConfig) {
		t.Errorf("a QP number of 25 bits: %v", err)
	}
	small, err := gen.NewRewriter(gen.Rewrite{Path: path(false, false)}, 100)
	if n, werr := small.Write(out, &was); err != nil || werr != nil || n != 0 {
		t.Errorf("too long for the interface: %d, %v, %v", n, err, werr)
	}
}
