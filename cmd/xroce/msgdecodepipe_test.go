package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A livePipe has what a program wrote into it, and asks that for more when it is empty.
type livePipe struct {
	written []byte
	more    func() ([]byte, error)
}

func (p *livePipe) Read(b []byte) (n int, err error) {
	if len(p.written) == 0 {
		if p.written, err = p.more(); err != nil {
			return 0, err
		}
	}
	n = copy(b, p.written)
	p.written = p.written[n:]
	return n, nil
}

// demoCapture is a capture of the demonstration. Another one may follow it in the same file.
func demoCapture(t *testing.T) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "demo.pcapng")
	i := bench{machine: goodMachine()}.run(t, append(quick[:len(quick):len(quick)], "--size", "64",
		"--capture", name)...)
	if i.code != exitOK {
		t.Fatal(i.stderr)
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMsgDecodeOfPipe: what a live pipe had is printed when the next packet is waited for, and a
// disk that is full ends what has no end.
func TestMsgDecodeOfPipe(t *testing.T) {
	t.Parallel()
	file := demoCapture(t)
	for _, form := range []string{"--json", "--short", "--json=false"} {
		printed := ""
		live, disk := &livePipe{written: file}, &livePipe{written: file}
		b := bench{machine: goodMachine(), change: func(a *app) {
			out := a.stdout.(*lockedBuffer)
			a.stdin = live
			live.more = func() ([]byte, error) { printed = out.String(); return nil, io.EOF }
		}}
		i := b.run(t, "msg", "decode", form, "-")
		lines := strings.Count(printed, "\n")
		if i.code != exitOK || printed != i.stdout || lines < 50 {
			t.Errorf("%s: code %d, %d lines of %d while it waits, %s", form, i.code, lines,
				strings.Count(i.stdout, "\n"), i.stderr)
		}
		asked := 0
		disk.more = func() ([]byte, error) {
			if asked++; asked == 100 {
				return nil, io.EOF // of what does not end
			}
			return file, nil
		}
		b.change = func(a *app) { a.stdin, a.stdout = disk, full{} }
		i = b.run(t, "msg", "decode", form, "-")
		if i.code != exitFailure || asked > 4 {
			t.Errorf("%s: code %d after the file came %d times", form, i.code, asked)
		}
		contains(t, i.stderr, "no space left on device")
	}
}
