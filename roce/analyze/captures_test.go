package analyze

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
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

// TestDamaged: copies of every capture with bytes that are wrong, packets that are missing, double
// or out of order, and one direction only, are analyzed to the end within the bounds.
func TestDamaged(t *testing.T) {
	names, err := filepath.Glob(captures + "/*.pcap")
	if err != nil || len(names) < 50 {
		t.Fatal(len(names), err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	a, bad := New(), New()
	var d dissect.Dissector
	var p dissect.Packet
	number := 0
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := roctest.Pcap(file)
		if err != nil {
			t.Fatal(err)
		}
		oneSided := random.IntN(4) == 0
		for i, f := range frames {
			switch random.IntN(10) {
			case 0:
				continue
			case 1:
				j := random.IntN(len(frames))
				frames[i], frames[j] = frames[j], frames[i]
			case 2:
				f = f[:random.IntN(len(f))]
			case 3:
				f = bytes.Clone(f)
				f[random.IntN(len(f))] ^= byte(1 + random.IntN(255))
			}
			if oneSided && len(f) > 29 && f[29]&1 == 0 {
				continue
			}
			number++
			at := clock.Time(number) * clock.Millisecond
			d.Dissect(dissect.LinkEthernet, f, len(frames[i]), &p)
			a.Add(number, at, 0, &p)
			// A wrong ICRC hides much of what is wrong from the first.
			if p.ICRC == dissect.Bad {
				p.ICRC = dissect.Cut
			}
			bad.Add(number, at, 0, &p)
		}
	}
	for _, x := range []*Analyzer{a, bad} {
		x.check(t)
		r := x.Report()
		if r.Packets != number || len(r.Connections) < 50 || len(r.Diagnosis) < 10 {
			t.Errorf("%d of %d packets, %d connections, %d findings", r.Packets, number,
				len(r.Connections), len(r.Diagnosis))
		}
	}
}
