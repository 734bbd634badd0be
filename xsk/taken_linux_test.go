package xsk_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// A takenQueue is a kernel whose queue is taken until somebody has asked by whom.
type takenQueue struct {
	xsk.Kernel
	by    string
	asked bool
}

func (q *takenQueue) Owner(int, int) string {
	q.asked = true
	return q.by
}

func (q *takenQueue) Bind(fd int, flags uint16, ifindex, queue int) error {
	if !q.asked {
		return unix.EBUSY
	}
	return q.Kernel.Bind(fd, flags, ifindex, queue)
}

// TestOpenWaitsForTheKernel: a queue that a process holds is not waited for as long as one that is
// nobody's any more and that the kernel has yet to give back.
func TestOpenWaitsForTheKernel(t *testing.T) {
	for by, want := range map[string]error{"": nil, "pid 7": unix.EBUSY} {
		k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
		q := &takenQueue{Kernel: k, by: by}
		cfg := small(k)
		cfg.Kernel, cfg.BindTimeout = q, timeout.Scaled(time.Second)
		s, err := xsk.Open(cfg)
		if !errors.Is(err, want) || !q.asked {
			t.Errorf("held by %q: %v", by, err)
		}
		if err == nil {
			err = s.Close()
		}
		if left := k.Leaks(); len(left) > 0 || want == nil && err != nil {
			t.Errorf("held by %q: %v, left behind: %v", by, err, left)
		}
	}
}
