package pager

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrNotHuge says that a range is not made of huge pages alone.
var ErrNotHuge = errors.New("pager: the range is not of huge pages")

// checkHuge tests that a range is made of huge pages.
func checkHuge(r Range) error {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotHuge, err)
	}
	defer f.Close() // read only
	return hugeIn(f, r)
}

// hugeIn tests it of mappings in the form of /proc/PID/smaps: each begins with a line
// of its addresses and has one of its page size. They are in order of address.
func hugeIn(smaps io.Reader, r Range) error {
	at := r.Addr // up to here it is
	var from, to uint64
	lines := bufio.NewScanner(smaps)
	for at < r.Addr+r.Length && lines.Scan() {
		line := lines.Text()
		if size, ok := strings.CutPrefix(line, "KernelPageSize:"); ok {
			var kib uint64
			if _, err := fmt.Sscanf(size, "%d kB", &kib); err != nil {
				return fmt.Errorf("%w: %q", ErrNotHuge, line)
			}
			if from <= at && at < to {
				if kib<<10 <= pageSize || r.Addr%(kib<<10) != 0 || r.Length%(kib<<10) != 0 {
					return fmt.Errorf("%w: %x-%x has pages of %d KiB", ErrNotHuge, from, to, kib)
				}
				at = to
			}
			continue
		}
		if a, b, ok := strings.Cut(line, "-"); ok {
			var x, y uint64
			_, errX := fmt.Sscanf(a, "%x", &x)
			if _, errY := fmt.Sscanf(b, "%x", &y); errX == nil && errY == nil {
				from, to = x, y
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotHuge, err)
	}
	if r.Length == 0 || at < r.Addr+r.Length {
		return fmt.Errorf("%w: nothing is mapped at %x", ErrNotHuge, at)
	}
	return nil
}
