package perfdump

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestPlaces: messages go through the places in turn.
func TestPlaces(t *testing.T) {
	for n, want := range []uint64{100, 164, 228, 100} {
		if got := (Places{Offset: 100, Count: 3, Stride: 64}).Of(n); got != want {
			t.Errorf("message %d is at %d, not %d", n, got, want)
		}
	}
	if got := (Places{Offset: 7, Count: 1}).Of(5); got != 7 {
		t.Errorf("the only place is at %d", got)
	}
}

// TestRead: what was written is read again, and nothing else is.
func TestRead(t *testing.T) {
	place := Places{Count: 1}
	d := Dump{
		Head: Head{
			Test: "send-bw", Length: 3, RKey: 9, QPs: []QP{{17, 18, 1, 2, place, place}},
		},
		Before: []byte{1, 10, 3}, After: []byte{4, 5, 6},
	}
	var b bytes.Buffer
	n, err := d.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
	}
	text := b.String()
	got, err := Read(&b)
	if err != nil || got.RKey != 9 || got.QPs[0] != d.QPs[0] ||
		!bytes.Equal(got.Before, d.Before) || !bytes.Equal(got.After, d.After) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string]string{
		"nothing":    "",
		"no head":    "{}",
		"no JSON":    "x\n123456",
		"too short":  text[:len(text)-1],
		"too long":   text + "12",
		"no length":  strings.Replace(text, `"length":3`, `"length":0`, 1),
		"no places":  strings.Replace(text, `"count":1`, `"count":0`, 1),
		"head alone": text[:strings.Index(text, "\n")+1],
	} {
		if _, err := Read(strings.NewReader(bad)); !errors.Is(err, ErrDump) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
