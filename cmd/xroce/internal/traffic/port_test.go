package traffic

import (
	"errors"
	"testing"

	"xroce/bpf"
	"xroce/xsk"
)

// TestModeUnder: under a program in generic mode frames are copied, whoever asks for something else
// is refused, and in native mode sockets are as they are to be.
func TestModeUnder(t *testing.T) {
	for _, asked := range []xsk.Mode{xsk.ModeAuto, xsk.ModeCopy, xsk.ModeZeroCopy} {
		if mode, err := modeUnder(bpf.Native, asked); mode != asked || err != nil {
			t.Errorf("native, %v: %v, %v", asked, mode, err)
		}
		mode, err := modeUnder(bpf.Generic, asked)
		if refused := asked == xsk.ModeZeroCopy; errors.Is(err, errors.ErrUnsupported) != refused ||
			!refused && (mode != xsk.ModeCopy || err != nil) {
			t.Errorf("generic, %v: %v, %v", asked, mode, err)
		}
	}
}
