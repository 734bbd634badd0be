package main

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
)

// TestSearchPlot: the picture of a search has room for what it says, also of one size, and a line
// for each trial.
func TestSearchPlot(t *testing.T) {
	row := searchRow{Size: 64, Most: 900, PPS: 400, Tried: []searchTrial{
		{Rate: 900, Loss: 5}, {Rate: 400, Good: true}, {Rate: 600, Loss: 1},
	}}
	for n := 1; n < 8; n += 6 {
		r := searchReport{MaxLoss: 0.1}
		for range n {
			r.Rows = append(r.Rows, row)
		}
		var picture bytes.Buffer
		if err := r.draw(&picture); err != nil {
			t.Fatal(err)
		}
		text := picture.Bytes()
		var svg struct {
			Width int `xml:"width,attr"`
			Texts []struct {
				X    int    `xml:"x,attr"`
				Text string `xml:",chardata"`
			} `xml:"text"`
			Lines []struct {
				Stroke string `xml:"stroke,attr"`
			} `xml:"line"`
		}
		if err := xml.Unmarshal(text, &svg); err != nil {
			t.Fatal(err)
		}
		red := 0
		for _, l := range svg.Lines {
			red += strings.Count(l.Stroke, "#c0392b")
		}
		if len(svg.Lines) != 3*n+1 || red != 2*n {
			t.Errorf("%d sizes: %d lines, %d of them red", n, len(svg.Lines), red)
		}
		for _, x := range svg.Texts {
			const half = 7 // pixels of the widest letters of 14, in both directions from the middle
			if w := len(x.Text) * half / 2; x.X < w || x.X+w > svg.Width {
				t.Errorf("%d sizes: %q around %d of %d", n, x.Text, x.X, svg.Width)
			}
		}
	}
}
