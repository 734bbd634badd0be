package engine_test

import (
	"math"
	"slices"
	"testing"

	"xroce/engine"
	"xroce/roce"
)

// TestExpectedFrames: the link is told how many frames may come to the QPs there are.
func TestExpectedFrames(t *testing.T) {
	_, b, link := recordingPair(t)
	filled := func(n int, typ roce.QPType) {
		t.Helper()
		link.filled = nil
		init := engine.QPInit{Type: typ, SendCQ: b.cq, RecvCQ: b.cq}
		if _, err := b.dev.CreateQP(b.pd, init); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(link.filled, []int{n}) {
			t.Errorf("after another QP of type %s: %v, want %d", typ, link.filled, n)
		}
	}
	filled(1024, roce.TypeRC) // there is one already
	filled(1536, roce.TypeRC)
	filled(math.MaxInt32, roce.TypeUD)
	filled(math.MaxInt32, roce.TypeUC)
	filled(6*512, roce.TypeRC)
}

// TestExpectedNativeFrames: nothing holds back who sends to a native port.
func TestExpectedNativeFrames(t *testing.T) {
	_, b, link := recordingPair(t)
	link.filled = nil
	openNative(t, b.dev, engine.NativeConfig{})
	if !slices.Equal(link.filled, []int{math.MaxInt32}) {
		t.Errorf("%v", link.filled)
	}
}
