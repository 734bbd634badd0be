package traffic_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine/capture/read"
	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// replay sends a capture over a link.
func replay(t *testing.T, file []byte, speed float64, from wire.GID) (
	traffic.Replayed, *wireLink, error,
) {
	t.Helper()
	reader, err := read.New(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	w, err := gen.NewRewriter(gen.Rewrite{Path: route().Path}, 1518)
	if err != nil {
		t.Fatal(err)
	}
	l := newWireLink()
	r := traffic.Replay{
		Link: l, Reader: reader, Rewriter: w, Speed: speed, From: from, Batch: 8,
		Clock: &virtual{tick: 1},
	}
	got, err := r.Run(t.Context())
	return got, l, err
}

// TestReplay: of a capture those packets go that the host of the first one sent, each in its
// time, or in half of it, or all at once; of a file that is cut off, what there is.
func TestReplay(t *testing.T) {
	file, err := os.ReadFile("../../../../roce/wire/testdata/captures/rc_rnr_v4.pcap")
	if err != nil {
		t.Fatal(err)
	}
	normal, l, err := replay(t, file, 1, wire.GID{})
	if err != nil || normal.Frames == 0 || normal.Others == 0 || normal.Late != 0 ||
		normal.Frames+normal.Others+normal.Foreign != normal.Read || normal.Duration == 0 {
		t.Fatalf("%+v, %v", normal, err)
	}
	var p wire.Packet
	for i, frame := range l.frames {
		if p.Decode(frame, nil) != wire.OK || !p.VerifyICRC() || p.Dst != route().Path.Dst {
			t.Fatalf("frame %d: %x", i, frame)
		}
	}
	double, _, err := replay(t, file, 2, wire.GID{})
	if d := normal.Duration - 2*double.Duration; err != nil || d < -2 || d > 2 {
		t.Errorf("%d ns, and at twice the speed %d: %v", normal.Duration, double.Duration, err)
	}
	most, _, err := replay(t, file, 0, wire.GID{})
	if err != nil || most.Frames != normal.Frames || most.Duration > clock.Microsecond {
		t.Errorf("as fast as it goes: %+v, %v", most, err)
	}
	other, _, err := replay(t, file, 0, wire.GIDFromIPv4([4]byte{192, 168, 77, 3}))
	if err != nil || other.Frames != normal.Others || other.Others != normal.Frames {
		t.Errorf("the other host: %+v, %v", other, err)
	}
	cut, _, err := replay(t, file[:len(file)-200], 0, wire.GID{})
	if !errors.Is(err, read.ErrCut) || cut.Frames == 0 || cut.Frames > normal.Frames {
		t.Errorf("cut off: %+v, %v", cut, err)
	}
	nobody, _, err := replay(t, file, 1, wire.GIDFromIPv4([4]byte{1}))
	if err != nil || nobody.Frames != 0 || nobody.Others != normal.Read-normal.Foreign {
		t.Errorf("nobody: %+v, %v", nobody, err)
	}
}

// TestReplayBadICRC: what was wrong on the wire is wrong again.
func TestReplayBadICRC(t *testing.T) {
	file, err := os.ReadFile("../../../../roce/wire/testdata/captures/corrupt_icrc_v4.B.pcap")
	if err != nil {
		t.Fatal(err)
	}
	got, l, err := replay(t, file, 0, wire.GID{})
	var p wire.Packet
	bad := uint64(0)
	for _, frame := range l.frames {
		if p.Decode(frame, nil) == wire.OK && !p.VerifyICRC() {
			bad++
		}
	}
	if err != nil || bad == 0 || got.BadICRC != bad {
		t.Errorf("%d wrong: %+v, %v", bad, got, err)
	}
}
