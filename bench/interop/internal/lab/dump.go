package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dumpInVM is where xroce writes the memory of a test in a VM.
const dumpInVM = "/tmp/memory"

// NewDump names the file where xroce is to write the memory of a test, and removes what an
// earlier one left there.
func (l *Lab) NewDump(ctx context.Context) (file string, err error) {
	if l.own != nil {
		_, _, err := l.own.Run(ctx, "rm -f "+dumpInVM)
		return dumpInVM, err
	}
	file = filepath.Join(l.dir, "memory")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return file, nil
}

// Dump opens what xroce has written there.
func (l *Lab) Dump(ctx context.Context) (io.ReadCloser, error) {
	if l.own == nil {
		return os.Open(filepath.Join(l.dir, "memory"))
	}
	text, status, err := l.own.Run(ctx, "cat "+dumpInVM)
	if err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, fmt.Errorf("cat ended with status %d: %s", status, text)
	}
	return io.NopCloser(bytes.NewReader([]byte(text))), nil
}

// quoted makes words for a shell of arguments.
func quoted(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		b.WriteString("'" + strings.ReplaceAll(arg, "'", `'\''`) + "' ")
	}
	return strings.TrimSuffix(b.String(), " ")
}
