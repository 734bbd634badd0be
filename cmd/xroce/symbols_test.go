package main

import (
	"debug/elf"
	"debug/gosym"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

// TestSymbols: the functions that docs/capture.md and the scripts for bpftrace name can be probed:
// each has code of its own, and was not put into its callers.
func TestSymbols(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it reads an ELF file")
	}
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	table := functions(t, name)
	files, err := filepath.Glob("../../docs/bpftrace/*.bt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../../docs/capture.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`xroce/[a-z/]+\.\(\*\w+\)\.\w+`).FindAllString(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s names no function", file)
		}
		for _, name := range names {
			if table.LookupFunc(name) == nil {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
	}
	if table.LookupFunc("xroce/roce.(*QP).HandlePackets") != nil {
		t.Error("everything is found")
	}
}

// functions are those that have code in a program.
func functions(t *testing.T, name string) *gosym.Table {
	t.Helper()
	file, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section := file.Section(".gopclntab")
	if section == nil {
		section = file.Section(".data.rel.ro.gopclntab") // of a program that may lie anywhere
	}
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, file.Section(".text").Addr))
	if err != nil {
		t.Fatal(err)
	}
	return table
}
