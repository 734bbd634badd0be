package main

import (
	"os"
	"path/filepath"
	"testing"

	"xroce/cmd/xroce/internal/wireshark"
)

// TestWireshark: the dissector is printed, or installed where it is told to, or in the home of the
// user.
func TestWireshark(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	b := bench{machine: goodMachine()}
	if i := b.run(t, "wireshark"); i.code != exitOK || i.stdout != string(wireshark.Script()) {
		t.Errorf("code %d, %d bytes", i.code, len(i.stdout))
	}
	path := filepath.Join(home, ".local/lib/wireshark/plugins/xroce.lua")
	if i := b.run(t, "wireshark", "--install"); i.code != exitOK ||
		i.stdout != "installed "+path+"\n" {
		t.Errorf("code %d, %s%s", i.code, i.stdout, i.stderr)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	dir := filepath.Join(home, "elsewhere")
	if i := b.run(t, "wireshark", "--install", "--dir", dir, "--json"); i.code != exitOK {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, wireshark.Name)); err != nil {
		t.Error(err)
	}
	if i := b.run(t, "wireshark", "--dir", dir); i.code != exitUsage {
		t.Errorf("code %d", i.code)
	}
}
