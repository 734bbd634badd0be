package main

import (
	"fmt"
	"os"

	"xroce/cmd/xroce/internal/userfile"
)

// openMapped opens the file of --mmap, nil without it, which a closed file is.
func (f *perfFlags) openMapped() (*os.File, error) {
	switch {
	case f.c.FileOffset < 0:
		return nil, usagef("--mmap-offset %d is negative", f.c.FileOffset)
	case f.mmap == "" && f.c.FileOffset != 0:
		return nil, usagef("--mmap-offset needs --mmap")
	case f.mmap == "":
		return nil, nil
	}
	info, err := os.Stat(f.mmap)
	if err != nil {
		return nil, fmt.Errorf("--mmap: %w", userfile.Failed(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("--mmap: %s is no regular file", f.mmap)
	}
	file, err := os.OpenFile(f.mmap, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("--mmap: %w", userfile.Failed(err))
	}
	return file, nil
}
