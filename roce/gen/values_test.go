package gen_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"xroce/roce/gen"
)

func take(v gen.Values, n int) (list []uint64) {
	for range n {
		list = append(list, v.Next())
	}
	return list
}

// TestParseValues: lists, ranges, steps and chance, and the smallest and largest of each.
func TestParseValues(t *testing.T) {
	for text, want := range map[string][]uint64{
		"7":     {7, 7, 7, 7},
		"1,9,4": {1, 9, 4, 1},
		"3-5":   {3, 4, 5, 3},
		"0-9/4": {0, 4, 8, 0},
		"0x10":  {16, 16, 16, 16},

		"7*2,1":     {7, 7, 1, 7},
		"8-9,3":     {8, 9, 3, 8},
		"1-3/2*2":   {1, 3, 1, 3},
		"5, 0x6 *2": {5, 6, 6, 5},
	} {
		v, err := gen.ParseValues(text, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Min() != slices.Min(want) || v.Max() != slices.Max(want) {
			t.Errorf("%s: from %d to %d", text, v.Min(), v.Max())
		}
		if got := take(v, 4); !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{
		"", "x", "5-3", "1,x", "1-2/0", "1-2/x", "random:5", "random:1-9/2", "-", "5/2",
		"1*0", "1*x", "1*", "*2", "1,random:1-9", "0-65535,1", "1*65537", "0-255*257",
		"0-0xffffffffffffffff,1", "0-0xffffffffffffffff*2",
	} {
		if v, err := gen.ParseValues(text, 1, nil); err == nil {
			t.Errorf("%q: %d", text, take(v, 3))
		}
	}
}

// TestRandomValues: chance is the same for the same seed, another for another, and stays in
// its range.
func TestRandomValues(t *testing.T) {
	of := func(seed uint64) []uint64 {
		v, err := gen.ParseValues("random:10-20", seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		return take(v, 100)
	}
	a, b := of(1), of(2)
	if !slices.Equal(a, of(1)) || slices.Equal(a, b) || slices.Min(a) != 10 || slices.Max(a) != 20 {
		t.Errorf("%d\n%d", a, b)
	}
}

// TestParseVary: fields with addresses, and what is no field.
func TestParseVary(t *testing.T) {
	for text, want := range map[string]uint64{
		"src_ip=10.0.0.1-10.0.0.9":               0x0a000001,
		"dst_ip=2001:db8::5,2001:db8::6":         5,
		"src_mac=02:00:00:00:00:07":              0x020000000007,
		"dest_qp=0x11-0x12":                      0x11,
		"dst_mac=02:00:00:00:00:01,ff:0:0:0:0:0": 0x020000000001,
	} {
		v, err := gen.ParseVary(text, 1)
		if err != nil || v.Values.Next() != want {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
	}
	for _, text := range []string{
		"", "x=1", "src_ip", "src_ip=x", "src_mac=1:2", "src_mac=1:2:3:4:5:600", "ttl=1.5",
	} {
		if v, err := gen.ParseVary(text, 1); err == nil {
			t.Errorf("%q: %+v", text, v)
		}
	}
	if v, err := gen.ParseSizes("imix", 1); err != nil || v.Max() != 1514 || v.Min() != 64 {
		t.Errorf("imix: %v", err)
	}
	if _, err := gen.ParseSizes("big", 1); err == nil {
		t.Error("big is a size")
	}
	for _, name := range []string{"udp", "ethernet", "roce"} {
		if k, err := gen.ParseKind(name); err != nil || k.String() != name {
			t.Errorf("%s: %s, %v", name, k, err)
		}
	}
	if _, err := gen.ParseKind("tcp"); err == nil {
		t.Error("tcp is a kind")
	}
	for _, name := range []string{"zeros", "count", "random"} {
		if f, _, err := gen.ParseFill(name); err != nil || f.String() != name {
			t.Errorf("%s: %s, %v", name, f, err)
		}
	}
	for _, text := range []string{"ones", "pattern", "0x", "0x1", "0xno", ""} {
		if f, b, err := gen.ParseFill(text); err == nil {
			t.Errorf("%q fills with %s, %x", text, f, b)
		}
	}
}

// TestFillPattern: bytes of a pattern repeat behind the signature of each frame.
func TestFillPattern(t *testing.T) {
	fill, pattern, err := gen.ParseFill("0xC0ffee")
	if err != nil || fill != gen.FillPattern {
		t.Fatalf("%s, %v", fill, err)
	}
	for _, kind := range []gen.Kind{gen.KindUDP, gen.KindEthernet, gen.KindRoCE} {
		f := flow(t, gen.Config{
			Kind: kind, Path: path(false, false), Sizes: gen.List(140), Fill: fill,
			Pattern: pattern,
		})
		frame := make([]byte, maxFrame)
		for range 2 {
			want := []byte{0xc0, 0xff, 0xee, 0xc0, 0xff, 0xee, 0xc0, 0xff, 0xee, 0xc0}
			if b := frame[:f.Next(frame, 1)]; !bytes.Contains(b, want) {
				t.Errorf("%s: % x", kind, b)
			}
		}
	}
	if _, err := gen.NewFlow(gen.Config{
		Path: path(false, false), Sizes: gen.List(64), MaxFrame: maxFrame, Fill: fill,
	}); !errors.Is(err, gen.ErrConfig) {
		t.Errorf("a pattern of no bytes: %v", err)
	}
}
