package decode

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/engine/capture/read"
	"xroce/roce/dissect"
	"xroce/roce/roctest"
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

// TestSeconds: times are in columns, finer ones are not rounded, and a clock may go back. What was
// printed before does not matter.
func TestSeconds(t *testing.T) {
	var kept clockFace
	for ns, want := range map[int64]string{
		0: "    0.000000", 1_500_000_000: "    1.500000", 1: "    0.000000001",
		123_456_789_012_345_000: "123456789.012345", -1_500_000_000: "   -1.500000",
		-1: "   -0.000000001", math.MinInt64: "-9223372036.854775808",
	} {
		if got := string(appendSeconds(nil, ns, 12)); got != want {
			t.Errorf("%d ns: %q, want %q", ns, got, want)
		}
		for range 2 {
			if got := string(kept.append(nil, ns, 12)); got != want {
				t.Errorf("%d ns behind others: %q, want %q", ns, got, want)
			}
		}
	}
}

// TestCounter: numbers that follow each other are those that package fmt prints.
func TestCounter(t *testing.T) {
	var c counterFace
	for _, from := range []uint64{0, 5, 95, 999_990, 7} {
		for n := from; n < from+120; n++ {
			if got, want := string(c.append(nil, n, 6)), fmt.Sprintf("%6d", n); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
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

// TestLinesAllocateNothing: a line of a packet of data needs no memory, also one of before the
// first packet, and with credits.
func TestLinesAllocateNothing(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(captures, "rc_write_burst_v4.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := roctest.Pcap(file)
	if err != nil {
		t.Fatal(err)
	}
	p, line := New(Lines), make([]byte, 0, 1024)
	var packet read.Packet
	at := int64(1e9)
	all := func() {
		for _, frame := range frames {
			at -= 1001
			packet = read.Packet{
				Number: 1, Time: at, Link: dissect.LinkEthernet, Data: frame, Length: len(frame),
			}
			line = p.Append(line[:0], &packet)
		}
	}
	if n := testing.AllocsPerRun(10, all); n != 0 {
		t.Errorf("%g allocations of %d lines", n, len(frames))
	}
}
