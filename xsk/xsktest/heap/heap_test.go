package heap

import (
	"runtime"
	"testing"
	"time"
)

// TestGrown: what is let go late is not counted, what stays is.
func TestGrown(t *testing.T) {
	const size = 8 << 20
	before := Live()
	late := make([]byte, size)
	time.AfterFunc(50*time.Millisecond, func() { runtime.KeepAlive(late); late = nil })
	if n := Grown(before, size/2); n > size/2 {
		t.Errorf("%d bytes are held by nobody", n)
	}
	held := make([]byte, size)
	if n := grown(before, size/2, 50*time.Millisecond); n < size/2 {
		t.Errorf("%d bytes are said to be held, want %d", n, size)
	}
	runtime.KeepAlive(held)
}
