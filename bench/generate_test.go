package main

import (
	"os"
	"path/filepath"
	"testing"

	"xroce/engine/capture/read"
)

// TestComplaint: of what a program said, the line that says what was wrong, or the last one.
func TestComplaint(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one\n\ntwo\n\n": "two",
		"EAL: Detected 2\nEAL: Option --legacy-mem is not compatible\nUsage: x\n": "EAL: Option " +
			"--legacy-mem is not compatible",
		"a\n  Cannot open it\nError 2\n": "Cannot open it",
	} {
		if got := complaint([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestWriteCapture: the file is there, as long as is said, and can be read.
func TestWriteCapture(t *testing.T) {
	const asked = 1 << 20
	c, err := writeCapture(t.TempDir(), asked)
	if err != nil || c.bytes < asked || c.packets == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	file, err := os.Open(c.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := read.New(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var p read.Packet
	if err := r.Next(&p); err != nil || p.Number != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := writeCapture(filepath.Join(t.TempDir(), "none"), asked); err == nil {
		t.Error("a file in a directory that is not there")
	}
}

// TestRamDisk: what was made is removed, and nothing is made that nobody asks for.
func TestRamDisk(t *testing.T) {
	var never, d ramDisk
	never.remove()
	dir, why := d.open()
	if why != "" {
		t.Skipf("SKIPPED: %s", why)
	}
	if again, _ := d.open(); again != dir {
		t.Errorf("%q and %q", dir, again)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	d.remove()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s: %v", dir, err)
	}
}
