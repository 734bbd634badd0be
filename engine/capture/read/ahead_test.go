package read

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"

	"xroce/xsk/xsktest/leaktest"
)

// TestAhead: what is read ahead is what is read otherwise, also when it comes in pieces that are
// far shorter than a packet, and the goroutine is gone when the Reader is closed.
func TestAhead(t *testing.T) {
	defer leaktest.None(t)
	file := pcapFile(little, 1, samples(t, "rc_send_v4.pcap"))
	for name, file := range map[string][]byte{
		"whole": file, "cut": file[:len(file)-3], "gzip": gzipped(t, file),
		"zstd": zstandard(t, file), "nothing": nil, "no capture": []byte("no capture"),
		"cut in gzip": gzipped(t, file)[:20],
	} {
		want, wantErr := all(t, bytes.NewReader(file))
		for _, length := range []int{1, 7, 64, 4096, 1 << 20} {
			r, err := newAheadReader(bytes.NewReader(file), 3, length)
			var got []Packet
			for err == nil {
				var p Packet
				if err = r.Next(&p); err == nil {
					p.Data = bytes.Clone(p.Data)
					got = append(got, p)
				}
			}
			if r != nil {
				r.Close()
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Errorf("%s, parts of %d: %v, want %v", name, length, err, wantErr)
			}
			if len(got) != len(want) {
				t.Fatalf("%s, parts of %d: %d packets, want %d", name, length, len(got), len(want))
			}
			for i, p := range got {
				if !bytes.Equal(p.Data, want[i].Data) || p.Time != want[i].Time {
					t.Errorf("%s, parts of %d: packet %d is another", name, length, i+1)
				}
			}
		}
	}
}

// TestAheadBuffer: a block as long as any may be is seen in one piece though it came in many, and
// what was seen is the caller's until the next call.
func TestAheadBuffer(t *testing.T) {
	defer leaktest.None(t)
	want := bytes.Repeat([]byte("0123456789abcdef"), (2*MaxBlock+48)/16)
	a := newAhead(iotest.HalfReader(bytes.NewReader(want)), 2, 3000)
	defer a.close()
	b := &buffer{ahead: a}
	for n, at := 1, 0; at < len(want); n = min(n*3, MaxBlock) {
		seen, err := b.peek(n)
		if len(seen) < n && !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes of %d, %v", len(seen), n, err)
		}
		if !bytes.Equal(seen, want[at:at+len(seen)]) {
			t.Fatalf("%d bytes at %d are others", len(seen), at)
		}
		b.take(len(seen))
		at += len(seen)
	}
}

// TestAheadErrors: an error comes behind what was there before it, and comes again. A reader that
// returns nothing for ever ends, and one that is closed early reads no more.
func TestAheadErrors(t *testing.T) {
	defer leaktest.None(t)
	in := io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(os.ErrClosed))
	a := newAhead(in, 2, 100)
	b := &buffer{ahead: a}
	for range 2 {
		if seen, err := b.peek(4); string(seen) != "abc" || !errors.Is(err, os.ErrClosed) {
			t.Errorf("%q, %v", seen, err)
		}
	}
	a.close()
	a = newAhead(silent{}, 2, 100)
	if _, err := (&buffer{ahead: a}).peek(1); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	a.close()
	r, err := NewAhead(bytes.NewReader(pcapFile(big, 1, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	r.Close()
	if err := r.Next(&Packet{}); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	endless := newAhead(zeros{}, 2, 100)
	if seen, err := (&buffer{ahead: endless}).peek(1); len(seen) != 1 || err != nil {
		t.Error(seen, err)
	}
	endless.close()
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
