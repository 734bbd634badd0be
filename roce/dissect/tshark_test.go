package dissect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A captured packet is one of a link type.
type captured struct {
	link Link
	data []byte
}

// pcapng is a file of packets of several link types, with an interface for each.
func pcapng(packets []captured) []byte {
	le := binary.LittleEndian
	block := func(b []byte, kind uint32, body []byte) []byte {
		n := uint32(12 + (len(body)+3)&^3)
		b = le.AppendUint32(le.AppendUint32(b, kind), n)
		b = append(append(b, body...), make([]byte, -len(body)&3)...)
		return le.AppendUint32(b, n)
	}
	body := append(le.AppendUint32(nil, 0x1a2b3c4d), 1, 0, 0, 0)
	b := block(nil, 0x0a0d0d0a, append(body, make([]byte, 8)...))
	number := map[Link]uint32{}
	for _, p := range packets {
		if _, ok := number[p.link]; !ok {
			number[p.link] = uint32(len(number))
			b = block(b, 1, append(le.AppendUint16(nil, uint16(p.link)), make([]byte, 6)...))
		}
		body := append(le.AppendUint32(nil, number[p.link]), make([]byte, 8)...)
		body = le.AppendUint32(le.AppendUint32(body, uint32(len(p.data))), uint32(len(p.data)))
		b = block(b, 6, append(body, p.data...))
	}
	return b
}

// tshark returns what tshark says in each field of each packet of a capture.
func tshark(t *testing.T, packets []captured, fields []string) [][]string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	name := filepath.Join(t.TempDir(), "packets.pcapng")
	if err := os.WriteFile(name, pcapng(packets), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-r", name, "-n", "-T", "fields", "-E", "separator=;", "-E", "occurrence=a",
		// Payloads are not guessed at: what is guessed hides headers that are there.
		"--disable-heuristic", "rpcrdma_infiniband", "--disable-protocol", "ethertype",
		"--disable-protocol", "eoib", "-o", userDLT,
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var complaints strings.Builder
	command := exec.Command(program, args...)
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, complaints.String())
	}
	lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	if len(lines) != len(packets) {
		t.Fatalf("tshark saw %d packets of %d", len(lines), len(packets))
	}
	rows := make([][]string, len(lines))
	for i, line := range lines {
		rows[i] = strings.Split(string(line), ";")
	}
	return rows
}

// userDLT makes tshark take LinkUser0 for native packets.
const userDLT = `uat:user_dlts:"User 0 (DLT=147)","infiniband","0","","0",""`

// ours are the values of every field of a packet that Wireshark knows, by name.
func ours(p *Packet) map[string][]string {
	var tree Tree
	p.Tree(&tree)
	values := map[string][]string{}
	for _, h := range tree.Headers() {
		for _, f := range h.Fields {
			if !strings.HasPrefix(f.Name, "xroce.") {
				values[f.Name] = append(values[f.Name], canonical(string(f.AppendValue(nil))))
			}
		}
	}
	return values
}

// canonical is a value in the one form in which values are compared.
func canonical(v string) string {
	if n, err := strconv.ParseUint(v, 0, 64); err == nil {
		return fmt.Sprint(n)
	}
	return strings.ToLower(v)
}

// theirs are the values that tshark has for a field. Some it has twice, or in another form.
func theirs(name, column string) (values []string) {
	for _, v := range strings.Split(column, ",") {
		switch {
		case v == "", name == "ip.version" && v == "6":
			continue
		case twice(name):
			v = "0x" + v
		}
		values = append(values, canonical(v))
	}
	if twice(name) {
		values = slices.Compact(values)
	}
	return values
}

// twice reports whether tshark prints a field twice, as bytes.
func twice(name string) bool { return name == "infiniband.immdt" || name == "infiniband.ieth" }

// forgotten reports whether tshark 4.0 does not show a field that is there: of payloads that are
// shorter than what it guesses there it forgets the ICRC.
func forgotten(name string, p *Packet) bool {
	return name == "infiniband.invariant.crc" && p.RoCE.PayloadLen() < 2
}

// TestTshark: of every capture, and in everything that lies around packets, every field that
// Wireshark knows by the same name has the same value.
func TestTshark(t *testing.T) {
	names, err := filepath.Glob(captures + "/*.pcap")
	if err != nil || len(names) < 50 {
		t.Fatal(len(names), err)
	}
	var packets []captured
	for _, name := range names {
		for _, f := range frames(t, name) {
			packets = append(packets, captured{LinkEthernet, f})
		}
	}
	for _, w := range wrappings() {
		for _, f := range frames(t, filepath.Join(captures, "rc_atomic_v4.pcap"))[:4] {
			packets = append(packets, captured{w.link, w.wrap(f)})
		}
	}
	packets = append(packets, captured{LinkUser0, nativePacket(t)})
	var d Dissector
	var p Packet
	wants := make([]map[string][]string, len(packets))
	known := map[string]bool{}
	for i, c := range packets {
		d.Dissect(c.link, c.data, len(c.data), &p)
		wants[i] = ours(&p)
		for name := range wants[i] {
			known[name] = true
		}
	}
	fields := slices.Sorted(maps.Keys(known))
	compared := 0
	for i, row := range tshark(t, packets, fields) {
		d.Dissect(packets[i].link, packets[i].data, len(packets[i].data), &p)
		for j, name := range fields {
			got, want := theirs(name, row[j]), wants[i][name]
			if compared += len(want); slices.Equal(got, want) ||
				len(got) == 0 && forgotten(name, &p) {
				continue
			}
			t.Errorf("%s, packet %d, %s: tshark %v, we %v\n%s", packets[i].link, i+1, name, got,
				want, p.AppendInfo(nil))
		}
	}
	if compared < 30*len(packets) {
		t.Errorf("only %d fields of %d packets", compared, len(packets))
	}
}
