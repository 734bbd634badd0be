package recordtest

import (
	"os"
	"path/filepath"
	"testing"

	"xroce/bench/softroce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// captures is where the records are, seen from a package beside this one.
const captures = "../../../../roce/wire/testdata/captures"

// A Packet is one of a recorded dialogue of two Soft-RoCE hosts.
type Packet struct {
	From  softroce.End // A is who sent the first one
	Frame []byte
}

// Read reads a capture of package wire by its name.
func Read(t *testing.T, name string) (list []Packet) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(captures, name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := roctest.Pcap(file)
	if err != nil {
		t.Fatal(err)
	}
	var first wire.GID
	for i, frame := range frames {
		p := Decode(t, frame)
		if i == 0 {
			first = p.Src
		}
		from := softroce.A
		if p.Src != first {
			from = softroce.B
		}
		list = append(list, Packet{from, frame})
	}
	return list
}

// Decode is the packet of a frame, which has to be one.
func Decode(t *testing.T, frame []byte) *wire.Packet {
	t.Helper()
	p := new(wire.Packet)
	if r := p.Decode(frame, nil); r != wire.OK {
		t.Fatalf("%x: %s", frame, r)
	}
	return p
}
