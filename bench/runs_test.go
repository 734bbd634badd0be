package main

import (
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
			if err := showStored(name, true); err != nil {
				t.Errorf("one of them: %v", err)
			}
		}
	}
	if err := showStored(names[1:], false); err == nil {
		t.Error("medians were made of runs of one case")
	}
	if err := showStored(dir+"/none.json", false); err == nil {
		t.Error("a file was read that is not there")
	}
}
