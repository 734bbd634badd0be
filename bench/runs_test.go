package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xroce/bench/machine"
	"xroce/bench/result"
)

// TestRunsFlags: several runs are whole ones.
func TestRunsFlags(t *testing.T) {
	f, err := parseFlags([]string{"--runs", "5", "--every", "1h"})
	if err != nil || f.runs != 5 || f.every != time.Hour {
		t.Errorf("%+v, %v", f, err)
	}
	for _, args := range [][]string{
		{"--runs", "5", "--only", "send"},
		{"--runs", "5", "--quick"},
		{"--runs", "4"},
		{"--runs", "-1"},
		{"--every", "-1s"},
	} {
		if f, err := parseFlags(args); err == nil {
			t.Errorf("parseFlags(%q) = %+v, want an error", args, f)
		}
	}
}

// TestShowStored wants whole runs where there are several.
func TestShowStored(t *testing.T) {
	dir := t.TempDir()
	names := ""
	for i := range result.RunsWanted {
		d := result.New(time.Unix(int64(1000*i), 0), machine.Facts{Commit: "abc"}, 0)
		d.Cases = []result.Case{{
			Name: "send-64", Variants: []string{"ours"}, Rows: []result.Row{{Variant: "ours"}},
		}}
		name, err := d.Save(dir)
		if err != nil {
			t.Fatal(err)
		}
		if names += "," + name; i == 0 {
			if err := showStored(flags{from: name, json: true}); err != nil {
				t.Errorf("one of them: %v", err)
			}
		}
	}
	if err := showStored(flags{from: names[1:]}); err == nil {
		t.Error("medians were made of runs of one case")
	}
	if err := showStored(flags{from: dir + "/none.json"}); err == nil {
		t.Error("a file was read that is not there")
	}
}

// TestWritePage: the page has both tables, and says that it is not written by hand.
func TestWritePage(t *testing.T) {
	var runs result.Runs
	for i := range result.RunsWanted {
		d := result.New(time.Unix(int64(1000*i), 0), machine.Facts{Commit: "abc"}, 0)
		for _, c := range choose(allCases(), "", false) {
			d.Cases = append(d.Cases, result.Case{
				Name: c.name, Variants: []string{"ours", "raw AF_XDP"}, Rows: []result.Row{
					{Variant: "ours", Value: 3}, {Variant: "raw AF_XDP", Value: 4},
				},
			})
		}
		runs = append(runs, d)
	}
	name := filepath.Join(t.TempDir(), "numbers.md")
	if err := showRuns(runs, flags{page: name}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		pageHead, "| SEND rate of 64 B, of raw | ≥ 0.75 | 0.75 | 0.75 … 0.75 | 5 | met |\n",
		"| send-64 | ours | raw AF_XDP | 0.75 | 0.75 … 0.75 | 5 | – |\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "|") && len(line) > pageColumns+1 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	if strings.Contains(string(page), "of tshark") {
		t.Error("there are goals of cases that a whole run has not")
	}
	if err := showRuns(runs[:4], flags{page: name}); err == nil {
		t.Error("four runs made a page")
	}
}
