package decode

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/engine/capture/read"
)

// captures are files of other programs.
const captures = "../../../../roce/wire/testdata/captures"

// large is a classic file of all captures, several times.
func large(b *testing.B) []byte {
	b.Helper()
	const header, times = 24, 20
	names, err := filepath.Glob(captures + "/*.pcap")
	if err != nil || len(names) == 0 {
		b.Fatal(len(names), err)
	}
	var head, packets []byte
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		head, packets = file[:header], append(packets, file[header:]...)
	}
	return append(bytes.Clone(head), bytes.Repeat(packets, times)...)
}

// TestSeconds: times are in columns, finer ones are not rounded, and a clock may go back.
func TestSeconds(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "    0.000000", 1_500_000_000: "    1.500000", 1: "    0.000000001",
		123_456_789_012_345_000: "123456789.012345", -1_500_000_000: "   -1.500000",
		math.MinInt64: "-9223372036.854776",
	} {
		if got := string(appendSeconds(nil, ns, 12)); got != want {
			t.Errorf("%d ns: %q, want %q", ns, got, want)
		}
	}
}

// TestComment: what strangers wrote into a capture cannot command a terminal, in no form.
func TestComment(t *testing.T) {
	p := read.Packet{Number: 1, Comment: "\x1b[2Jhello\n\"world\"", Dropped: 3, Direction: read.Out}
	for form, want := range map[Form]string{
		Lines: ` out (before it the capture lost 3) # \x1b[2Jhello\n"world"` + "\n",
		JSON:  `,"direction":"out","dropped_before":3,"comment":"\u001b[2Jhello\n\"world\"",`,
	} {
		got := string(New(form).Append(nil, &p))
		if !strings.Contains(got, want) || strings.Contains(got, "\x1b") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// BenchmarkDecode prints a capture in each form: the throughput is that of the file.
func BenchmarkDecode(b *testing.B) {
	file := large(b)
	for name, form := range map[string]Form{"lines": Lines, "details": Details, "json": JSON} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				r, err := read.New(bytes.NewReader(file))
				if err != nil {
					b.Fatal(err)
				}
				printer := New(form)
				var p read.Packet
				var line []byte
				for r.Next(&p) == nil {
					line = printer.Append(line[:0], &p)
					if _, err := io.Discard.Write(line); err != nil {
						b.Fatal(err)
					}
				}
				r.Close()
			}
		})
	}
}
