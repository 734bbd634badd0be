package decode

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
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
