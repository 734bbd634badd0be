package main

import (
	"encoding/json"
	"testing"

	"xroce/encap"
)

// TestEncapList: the table as people read it, and the same for programs.
func TestEncapList(t *testing.T) {
	i := bench{machine: goodMachine()}.run(t, "encap", "list")
	if i.code != exitOK || i.stderr != "" {
		t.Errorf("code %d, stderr %q", i.code, i.stderr)
	}
	golden(t, "encap_list.golden", i.stdout)

	i = bench{machine: goodMachine()}.run(t, "encap", "list", "--json")
	var list []encapFormat
	if err := json.Unmarshal([]byte(i.stdout), &list); err != nil {
		t.Fatalf("%v in %s %s", err, i.stdout, i.stderr)
	}
	formats := encap.Formats()
	if len(list) != len(formats) {
		t.Fatalf("%d formats, want %d", len(list), len(formats))
	}
	for n, f := range list {
		s := &formats[n]
		if f.Name != s.Name || f.Packet != s.Whole || f.Segments != s.Segmented ||
			f.Message != s.Connected || len(f.Carries) != len(s.Codes) || f.Source != s.Source ||
			f.Trailers == nil || f.Length == "" {
			t.Errorf("%+v is not %+v", f, s)
		}
	}
}

// TestEncapUsage: it has nothing but the list, which takes nothing.
func TestEncapUsage(t *testing.T) {
	for _, args := range [][]string{{"encap", "put"}, {"encap", "list", "raw"}} {
		if i := (bench{machine: goodMachine()}).run(t, args...); i.code != exitUsage {
			t.Errorf("%v: code %d", args, i.code)
		}
	}
}
