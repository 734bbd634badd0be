package read

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBuffer: however an io.Reader hands out a file, also with its end, the same bytes are seen,
// and what was seen and not taken is seen again.
func TestBuffer(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), (MaxBlock+3*portion)/16)
	for name, in := range map[string]func(io.Reader) io.Reader{
		"at once":  func(r io.Reader) io.Reader { return r },
		"in halfs": iotest.HalfReader, "with its end": iotest.DataErrReader,
	} {
		b := newBuffer(in(bytes.NewReader(want)))
		var got []byte
		for n := 1; ; n = min(n*3, MaxBlock) {
			seen, err := b.peek(n)
			if len(seen) < n && !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %d bytes of %d, %v", name, len(seen), n, err)
			}
			again, _ := b.peek(len(seen))
			if !bytes.Equal(seen, again) {
				t.Fatalf("%s: %d bytes are others when seen again", name, len(seen))
			}
			got = append(got, seen...)
			b.take(len(seen))
			if err != nil {
				break
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
		}
	}
}

// TestBufferErrors: an error comes behind what was there before it, and a reader that returns
// nothing for ever ends.
func TestBufferErrors(t *testing.T) {
	broken := errors.New("broken")
	b := newBuffer(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)))
	if seen, err := b.peek(3); string(seen) != "abc" || err != nil {
		t.Errorf("%q, %v", seen, err)
	}
	if seen, err := b.peek(4); string(seen) != "abc" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", seen, err)
	}
	if _, err := newBuffer(silent{}).peek(1); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

// silent returns nothing and no error.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }
