package gen_test

import (
	"testing"

	"xroce/roce/gen"
	"xroce/roce/wire"
)

// TestFaultsOfKeys: a wrong key is counted where there is a key, and the frame has it, whatever
// else is wrong with that frame.
func TestFaultsOfKeys(t *testing.T) {
	f := flow(t, gen.Config{
		Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(120),
		RoCE: gen.RoCE{
			Opcodes: []wire.Opcode{wire.RCSendOnly, wire.RCWriteOnly, wire.RCFetchAdd}, RKey: 0x77,
		},
		Faults: []gen.Fault{{Kind: gen.FaultBadKey, Every: 1}, {Kind: gen.FaultOrder, Every: 5}},
	})
	frame := make([]byte, maxFrame)
	made := uint64(0)
	for range 30 {
		if wrongKey(t, frame[:f.Next(frame, 1)], 0x77) {
			made++
		}
	}
	// Of 20 packets with a key four have another opcode, which has none.
	if got := f.Injected(); got[gen.FaultBadKey] != made || made != 16 || got[gen.FaultOrder] != 6 {
		t.Errorf("%v were counted, %d wrong keys made", got, made)
	}
}

// wrongKey reports whether a frame has a key, and that is another one.
func wrongKey(t *testing.T, frame []byte, right uint32) bool {
	t.Helper()
	var p wire.Packet
	if reason := p.Decode(frame, nil); reason != wire.OK {
		t.Fatal(reason)
	}
	switch {
	case p.Spec.Has(wire.HasRETH):
		return p.RETH().RKey != right
	case p.Spec.Has(wire.HasAtomicETH):
		return p.AtomicETH().RKey != right
	}
	return false
}
