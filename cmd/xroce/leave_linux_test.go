package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLeaves: a command is to end whose input says nothing, as a pipe or as a FIFO that nobody
// opens, or whose output nobody takes. It does.
func TestLeaves(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	begins := append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, make([]byte, 16)...)
	for name, args := range map[string][]string{
		"decode": {"decode", "-"}, "analyze": {"analyze", "-"},
		"msg decode":    {"msg", "decode", "-"},
		"decode a FIFO": {"decode", fifo}, "analyze a FIFO": {"analyze", fifo},
		"decode for nobody": {"decode", captures + "/rc_send_v4.pcap"},
	} {
		t.Run(name, func(t *testing.T) {
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if _, err := out.Write(begins); err != nil {
				t.Fatal(err)
			}
			nobody := make(stuckWriter, 1)
			i := bench{machine: goodMachine(), change: func(a *app) {
				a.stdin, a.dumpPatience = in, time.Millisecond
				if name == "decode for nobody" {
					a.stdout = nobody
				}
			}}.start(t, args...)
			if name == "decode for nobody" {
				<-nobody
			}
			pipe := args[len(args)-1] == "-"
			for waiting := 1; pipe && waiting > 0; time.Sleep(time.Millisecond) {
				if waiting, err = unix.IoctlGetInt(int(out.Fd()), unix.TIOCINQ); err != nil {
					t.Fatal(err)
				}
			}
			i.cancel()
			i.wait(t).exited(t, exitInterrupted)
			_ = out.Close() // whoever is left behind ends
		})
	}
	for range 2 { // those that wait for somebody who opens it
		if file, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			_ = file.Close()
		}
	}
}
