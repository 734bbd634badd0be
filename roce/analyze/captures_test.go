package analyze

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/dissect"
	"xroce/roce/roctest"
)

// captures are files of other programs.
const captures = "../wire/testdata/captures"

// analyzed is the report of a capture of Ethernet.
func analyzed(t testing.TB, name string) *Report {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(captures, name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	a := New()
	var d dissect.Dissector
	var p dissect.Packet
	le := binary.LittleEndian
	number := 0
	for b := file[24:]; len(b) > 16; {
		at := clock.Time(le.Uint32(b))*clock.Second + clock.Time(le.Uint32(b[4:]))*clock.Microsecond
		n := int(le.Uint32(b[8:]))
		number++
		d.Dissect(dissect.LinkEthernet, b[16:16+n], n, &p)
		a.Add(number, at, 0, &p)
		b = b[16+n:]
	}
	return a.Report()
}

// capturedFrames are the frames of a capture, each behind its length and a time.
func capturedFrames(t testing.TB, name string) (b []byte) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(captures, name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := roctest.Pcap(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		b = append(b, byte(len(f)>>8), byte(len(f)), byte(i), 10)
		b = append(b, f...)
	}
	return b
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestCaptures: what is said of every capture is what has been read and found right. What the wire
// did to them is in their names; of those that end in .B it was seen behind the loss, of others
// before it.
func TestCaptures(t *testing.T) {
	const golden = "testdata/diagnosis.golden"
	names, err := filepath.Glob(captures + "/*.pcap")
	if err != nil || len(names) < 50 {
		t.Fatal(len(names), err)
	}
	var got bytes.Buffer
	for _, name := range names {
		name = strings.TrimSuffix(filepath.Base(name), ".pcap")
		r := analyzed(t, name)
		fmt.Fprintf(&got, "%s: %d connections\n", name, len(r.Connections))
		for _, d := range r.Diagnosis {
			fmt.Fprintf(&got, "    %s\n", d)
		}
	}
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("it is not %s (write it anew with -update):\n%s", golden, got.Bytes())
	}
}
