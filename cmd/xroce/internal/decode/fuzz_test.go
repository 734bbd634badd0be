package decode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/engine/capture/read"
	"xroce/roce/dissect"
	"xroce/roce/roctest"
)

// FuzzPrinter: whatever is in a packet, a line is one line of text that commands no terminal, and
// an object is JSON.
func FuzzPrinter(f *testing.F) {
	for _, name := range []string{"cm_sidr_v6", "rc_rnr_v4"} {
		file, err := os.ReadFile(filepath.Join(captures, name+".pcap"))
		if err != nil {
			f.Fatal(err)
		}
		frames, err := roctest.Pcap(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(dissect.LinkEthernet), frames[0], int64(0), "comment")
	}
	f.Fuzz(func(t *testing.T, link uint16, data []byte, at int64, comment string) {
		p := read.Packet{
			Number: 1, Time: at, Link: dissect.Link(link), Data: data, Length: len(data),
			Comment: comment,
		}
		line := string(New(Lines).Append(nil, &p))
		if strings.IndexFunc(line, func(r rune) bool { return r < ' ' }) != len(line)-1 {
			t.Errorf("%q", line)
		}
		New(Details).Append(nil, &p)
		if object := New(JSON).Append(nil, &p); !json.Valid(object) {
			t.Errorf("%s", object)
		}
	})
}
