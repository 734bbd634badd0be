package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// captures has files of other programs, none of which speaks messages.
const captures = "../../roce/wire/testdata/captures"

// TestMsgDecode: what the demonstration has captured is told line by line, in full and in short;
// what is cut off is told as far as it goes.
func TestMsgDecode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "demo.pcapng")
	i := bench{machine: goodMachine()}.run(t, append(quick, "--size", "64", "--capture", file)...)
	if i.code != exitOK {
		t.Fatal(i.stderr)
	}
	decode := func(args ...string) *invocation {
		return bench{machine: goodMachine()}.run(t, append([]string{"msg", "decode"}, args...)...)
	}
	i = decode(file)
	lines := strings.Split(i.stdout, "\n")
	if i.code != exitOK || !i.quiet() || len(lines) < 50 || strings.Contains(i.stdout, "perhaps") {
		t.Errorf("code %d, %d lines, %s\n%s", i.code, len(lines), i.stderr, i.stdout)
	}
	contains(t, i.stdout, "192.0.2.1 > 192.0.2.2 0x000001 REQ qpn=0x", " HELLO version=1..1 ",
		" ADVERT class=0 epoch=0 slots=32 size=1064 addr=0x", " RTS flags=GET id=1025 len=262144 ",
		" PROVISION_REQ class=2 ", " MATCHED ", " FIN seq=")
	contains(t, decode("--short", file).stdout, " READ id=1025 len=262144\n", " FIN\n")
	objects := 0
	d := json.NewDecoder(strings.NewReader(decode("--json", file).stdout))
	for ; d.More(); objects++ {
		var m decodedMessage
		if err := d.Decode(&m); err != nil || m.Packet == 0 || m.Text == "" {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	if objects != len(lines)-1 {
		t.Errorf("%d messages", objects)
	}
	for _, form := range []string{"--json", "--json=false"} {
		disk := &refusing{}
		b := bench{machine: goodMachine(), change: func(a *app) { a.stdout = disk }}
		i := b.run(t, "msg", "decode", form, file)
		// The last write is what the error is told with in JSON.
		if i.code != exitFailure || disk.tried == 0 || disk.tried > 2 {
			t.Errorf("of a disk that is full: code %d, %d writes, %s", i.code, disk.tried,
				i.stderr)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content[:len(content)-1000], 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, decode(file).stdout, " RTS flags=GET id=1025 ")
}

// TestMsgDecodeOthers: a capture without messages says nothing, and what is no capture is refused.
func TestMsgDecodeOthers(t *testing.T) {
	names, err := filepath.Glob(captures + "/*.pcap")
	if err != nil || len(names) < 50 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		i := bench{machine: goodMachine()}.run(t, "msg", "decode", name)
		if i.code != exitOK || i.stdout != "" || !i.quiet() {
			t.Errorf("%s: code %d, %q, %s", name, i.code, i.stdout, i.stderr)
		}
	}
	short := filepath.Join(t.TempDir(), "short.pcap")
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(short, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	i := bench{machine: goodMachine()}.run(t, "msg", "decode", short)
	if i.code != exitFailure || !strings.Contains(i.stderr, short+": after ") {
		t.Errorf("cut off: code %d, %s", i.code, i.stderr)
	}
	for _, content := range []string{"", "abc", "no capture at all", "\x0a\x0d\x0d"} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		i := bench{machine: goodMachine()}.run(t, "msg", "decode", file)
		if i.code != exitFailure || !strings.Contains(i.stderr, "no capture: neither pcap") {
			t.Errorf("%q: code %d, %s", content, i.code, i.stderr)
		}
	}
}

// A refusing writer counts what it refuses.
type refusing struct{ tried int }

func (r *refusing) Write([]byte) (int, error) {
	r.tried++
	return 0, unix.ENOSPC
}
