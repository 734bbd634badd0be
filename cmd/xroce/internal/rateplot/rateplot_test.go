package rateplot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"xroce/cmd/xroce/internal/rateplot"
	"xroce/engine/sim/congestion"
	"xroce/roce"
)

// TestWrite draws a run: well-formed XML with a line for each flow and one for the queue.
func TestWrite(t *testing.T) {
	s, _ := congestion.Find("incast-8-dcqcn")
	s.End = 2 * roce.Millisecond
	r, err := congestion.Run(t.Context(), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rateplot.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte("<path")); n < len(s.Flows)+2 {
		t.Errorf("%d paths for %d flows", n, len(s.Flows))
	}
	d := xml.NewDecoder(&b)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
