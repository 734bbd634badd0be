package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// TestExtcap: what Wireshark asks is answered in its form.
func TestExtcap(t *testing.T) {
	b, _, client := pingpongBench(t)
	i := b.run(t, "extcap", "--extcap-interfaces", "--extcap-version=4.0")
	want := fmt.Sprintf("interface {value=xroce-xr1}"+
		"{display=RoCE in user space on xr1 (process %d)}", os.Getpid())
	if i.code != exitOK || !strings.HasPrefix(i.stdout, "extcap {version=") ||
		!strings.Contains(i.stdout, want) {
		t.Errorf("code %d: %s%s", i.code, i.stdout, i.stderr)
	}
	i = b.run(t, "extcap", "--extcap-interface", "xroce-xr1", "--extcap-dlts")
	if i.code != exitOK || i.stdout != "dlt {number=1}{name=EN10MB}{display=Ethernet}\n" {
		t.Errorf("code %d: %s%s", i.code, i.stdout, i.stderr)
	}
	i = b.run(t, "extcap", "--extcap-interface", "xroce-xr1", "--extcap-capture-filter", "qpn ==")
	if i.code != exitOK || !strings.Contains(i.stdout, "want a number") {
		t.Errorf("code %d: %s%s", i.code, i.stdout, i.stderr)
	}
	for _, args := range []string{
		"extcap", "extcap --capture", "extcap --extcap-interface eth0 --capture --fifo f",
	} {
		if i := b.run(t, strings.Fields(args)...); i.code != exitUsage {
			t.Errorf("%s: code %d: %s", args, i.code, i.stderr)
		}
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	capturing := b.start(t, "extcap", "--extcap-interface", "xroce-xr1", "--capture", "--fifo",
		fifo, "--extcap-capture-filter", "outbound")
	reader, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	capturing.awaitReady(t)
	b.run(t, client...)
	begin := make([]byte, 4)
	if _, err := reader.Read(begin); err != nil || string(begin) != "\x0a\x0d\x0d\x0a" {
		t.Errorf("%x, %v", begin, err)
	}
	reader.Close() // that is how Wireshark stops
	capturing.cancel()
	capturing.wait(t)
}

// TestExtcapInstall: the script starts this program, and what is no file stays.
func TestExtcapInstall(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	b := bench{machine: goodMachine()}
	name := filepath.Join(home, ".local/lib/wireshark/extcap/xroce")
	for range 2 {
		if i := b.run(t, "extcap", "--install"); i.code != exitOK || i.stdout != name+"\n" {
			t.Fatalf("code %d: %s%s", i.code, i.stdout, i.stderr)
		}
	}
	script, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(script), " extcap \"$@\"\n") {
		t.Errorf("%s, %v", script, err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", name); err != nil {
		t.Fatal(err)
	}
	if i := b.run(t, "extcap", "--install"); i.code != exitFailure {
		t.Errorf("code %d: %s", i.code, i.stdout)
	}
}

// TestExtcapInTshark: tshark lists the device of a program that runs, and captures there.
func TestExtcapInTshark(t *testing.T) {
	t.Parallel()
	xsktest.NeedRoot(t) // to lay the script over a directory of Wireshark
	folders, err := exec.Command("tshark", "-G", "folders").Output()
	if err != nil {
		t.Skipf("tshark is not installed: %v", err)
	}
	system := regexp.MustCompile(`(?m)^Extcap path:\s+(/\S+)$`).FindSubmatch(folders)
	if system == nil {
		t.Skip("this tshark does not say where extcap programs are")
	}
	b, _ := simBench(t)
	b.runtime = filepath.Join(t.TempDir(), "xroce")
	long := []string{"perf", "send-lat", "-D", "1000", "-u", "22"}
	server := b.start(t, append(long, "-p", "0", "-d", "xr1")...)
	port := server.listenPort(t)
	server.awaitReady(t) // it listens before it has its device
	client := b.start(t, append(long, "-d", "xr2", "-p", port, "127.0.0.1")...)
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=0 %s=%s exec %s extcap \"$@\"\n", childUser, childRuntime,
		shellQuote(b.runtime), shellQuote(executable()))
	if err := os.WriteFile(filepath.Join(dir, "xroce"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	tshark := func(args ...string) string {
		t.Helper()
		over := `mount --bind "$0" "$1" && shift && exec tshark "$@"`
		cmd := exec.CommandContext(ctx, "unshare", append([]string{
			"-m", "sh", "-c", over, dir, string(system[1]),
		}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		cmd.WaitDelay = timeout.Scaled(10 * time.Second)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("tshark %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	if list := tshark("-D"); !strings.Contains(list, "xroce-xr1 (RoCE in user space on xr1") {
		t.Errorf("%s", list)
	}
	out := tshark("-i", "xroce-xr1", "-c", "3", "-f", "outbound and opcode != ACK", "-T", "fields",
		"-e", "frame.comment", "-e", "infiniband.bth.opcode")
	if strings.Count(out, " sent\t") != 3 {
		t.Errorf("%s", out)
	}
	client.cancel()
	server.cancel()
}
