package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/roctest"
)

// decoded runs xroce decode.
func decoded(t *testing.T, args ...string) *invocation {
	t.Helper()
	return bench{machine: goodMachine()}.run(t, append([]string{"decode"}, args...)...)
}

// TestDecode: as many lines as a capture has packets, as many objects of JSON, and with -V every
// header.
func TestDecode(t *testing.T) {
	names, err := filepath.Glob(captures + "/*.pcap")
	if err != nil || len(names) < 50 {
		t.Fatal(names, err)
	}
	for n, name := range names {
		damaged := strings.Contains(name, "/corrupt_") && strings.Contains(name, ".B.")
		if n%8 != 0 && !damaged {
			continue // package dissect has looked at all of them
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := roctest.Pcap(file)
		if err != nil {
			t.Fatal(err)
		}
		i := decoded(t, name)
		if n := strings.Count(i.stdout, "\n"); i.code != exitOK || !i.quiet() || n != len(frames) {
			t.Errorf("%s: code %d, %d lines of %d packets, %s", name, i.code, n, len(frames),
				i.stderr)
		}
		if bad := strings.Count(i.stdout, "icrc BAD"); bad > 0 != damaged {
			t.Errorf("%s: %d packets of a wrong ICRC", name, bad)
		}
		lines := strings.SplitAfter(decoded(t, "--json", name).stdout, "\n")
		if len(lines) != len(frames)+1 {
			t.Errorf("%s: %d objects of %d packets", name, len(lines)-1, len(frames))
		}
		for _, line := range lines[:len(lines)-1] {
			var object struct {
				Opcode string           `json:"opcode"`
				Layers []map[string]any `json:"layers"`
			}
			if err := json.Unmarshal([]byte(line), &object); err != nil || object.Opcode == "" ||
				len(object.Layers) < 5 {
				t.Fatalf("%s: %v in %s", name, err, line)
			}
		}
	}
	i := decoded(t, "-V", "-c", "1", captures+"/cm_connect_v4.pcap")
	golden(t, "decode_details.golden", i.stdout)
}

// TestDecodeInput: stdin is read like a file; a file that ends in the middle is printed to there
// and is a failure, as is none.
func TestDecodeInput(t *testing.T) {
	file, err := os.ReadFile(captures + "/rc_send_v4.pcap")
	if err != nil {
		t.Fatal(err)
	}
	whole := decoded(t, captures+"/rc_send_v4.pcap").stdout
	b := bench{machine: goodMachine()}
	b.change = func(a *app) { a.stdin = bytes.NewReader(file) }
	i := b.run(t, "decode", "-")
	if i.code != exitOK || i.stdout != whole {
		t.Errorf("stdin: code %d, %s%s", i.code, i.stdout, i.stderr)
	}
	short := filepath.Join(t.TempDir(), "short.pcap")
	if err := os.WriteFile(short, file[:len(file)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	i = decoded(t, short)
	if i.code != exitFailure || !strings.HasPrefix(whole, i.stdout) ||
		strings.Count(i.stdout, "\n") != strings.Count(whole, "\n")-1 {
		t.Errorf("cut off: code %d, %s", i.code, i.stdout)
	}
	contains(t, i.stderr, short+": after 26 packets: the file ends in the middle of a packet")
	if i := decoded(t, short+"-none"); i.code != exitFailure {
		t.Errorf("no file: code %d", i.code)
	}
	if i := decoded(t, "--count", "-1", short); i.code != exitUsage {
		t.Errorf("a negative count: code %d", i.code)
	}
}

// TestDecodeCounts: capinfos counts as many packets as there are lines.
func TestDecodeCounts(t *testing.T) {
	program, err := exec.LookPath("capinfos")
	if err != nil {
		t.Skip("capinfos is not installed")
	}
	name := captures + "/rc_write_burst_v4.pcap"
	out, err := exec.Command(program, "-T", "-r", "-c", "-M", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(out))
	lines := strings.Count(decoded(t, name).stdout, "\n")
	if fields[len(fields)-1] != "130" || lines != 130 {
		t.Errorf("capinfos: %s, we print %d", out, lines)
	}
}
