package play

import (
	"context"
	"fmt"
	"strings"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/cmd/perfdump"
)

// dumpArgs are the arguments that make xroce write the memory of a test, none for what has
// no such memory. What an earlier case left there is removed.
func dumpArgs(ctx context.Context, l *lab.Lab, t *cases.Tool, c cases.Case) ([]string, error) {
	if !t.Dumps(c) {
		return nil, nil
	}
	file, err := l.NewDump(ctx)
	return []string{"--dump", file}, err
}

// compare tells how many bytes of payload of a case were compared with the memory of
// xroce, and what is wrong with them, "" for nothing.
func compare(ctx context.Context, l *lab.Lab, w *watch) (compared int, wrong string) {
	file, err := l.Dump(ctx)
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
