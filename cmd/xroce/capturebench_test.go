package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// largeCapture writes a classic file of all captures, so many times over, and returns its name and
// its length in bytes.
func largeCapture(b testing.TB, times int) (name string, size int64) {
	b.Helper()
	const header = 24
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
	file := append(bytes.Clone(head), bytes.Repeat(packets, times)...)
	name = filepath.Join(b.TempDir(), "large.pcap")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		b.Fatal(err)
	}
	return name, int64(len(file))
}

// BenchmarkCapture reads a large capture with our commands and those of others: the throughput is
// that of the file.
func BenchmarkCapture(b *testing.B) {
	name, size := largeCapture(b, 100)
	for _, command := range []string{"decode", "analyze"} {
		b.Run("xroce-"+command, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				a := newApp(io.Discard, os.Stderr)
				a.runtime = ""
				if code := a.run(b.Context(), []string{command, name}); code != exitOK {
					b.Fatal(code)
				}
			}
		})
	}
	for _, command := range [][]string{{"tshark", "-n", "-r"}, {"capinfos"}} {
		b.Run(command[0], func(b *testing.B) {
			program, err := exec.LookPath(command[0])
			if err != nil {
				b.Skip(err)
			}
			b.SetBytes(size)
			for b.Loop() {
				args := append(append([]string{}, command[1:]...), name)
				if err := exec.Command(program, args...).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
