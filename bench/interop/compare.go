package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"xroce/cmd/perfdump"
)

// dumpFile is where xroce writes the memory of a test.
func (l *lab) dumpFile() string { return filepath.Join(l.dir, "memory") }

// dumpArgs are the arguments that make xroce do so, none for what has no such memory.
// What an earlier case left there is removed.
func (l *lab) dumpArgs(t *tool) ([]string, error) {
	if !t.dumps() {
		return nil, nil
	}
	if err := os.Remove(l.dumpFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return []string{"--dump", l.dumpFile()}, nil
}

// compare tells how many bytes of payload of a case were compared with the memory of
// xroce, and what is wrong with them, "" for nothing.
func (l *lab) compare(w *watch) (compared int, wrong string) {
	file, err := os.Open(l.dumpFile())
	if err != nil {
		return 0, fmt.Sprintf("the memory of xroce: %v", err)
	}
	defer file.Close()
	dump, err := perfdump.Read(file)
	if err != nil {
		return 0, fmt.Sprintf("the memory of xroce: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	compared, faults := w.payload.Compare(dump)
	return compared, strings.Join(faults, "; ")
}
