package xsk_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// TestMemoryBound: frames and rings are within Config.Memory, with each number of queues, or
// nothing is opened. That is no shortage, so nothing is limited.
func TestMemoryBound(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		mtu    int
		queues int
		memory int64
		frames int // bytes of frames, 0 for a refusal
	}{
		{1500, 1, 0, 56 * mib},
		{1500, 1, 1 << 40, 56 * mib},
		{1500, 1, 8 * mib, 7 * mib},
		{4200, 1, 8 * mib, 4 * mib}, // 8 MiB of frames, and the rings
		{1500, 4, 8 * mib, (4*384 + 128) * 4096},
		{1500, 1, 2 * mib, (384 + 64) * 4096},
		{1500, 1, mib, 0},
	} {
		k, _ := xsktest.NewWire(
			xsktest.KernelOptions{MTU: c.mtu, Queues: c.queues}, xsktest.KernelOptions{})
		counted := &mapped{Kernel: k}
		cfg := xsk.Config{Interface: "fake0", Kernel: counted, Memory: c.memory, FillTarget: 128}
		var link xsk.Link
		var err error
		if c.queues == 1 {
			link, err = xsk.Open(cfg)
		} else {
			link, err = xsk.OpenGroup(cfg, []int{0, 1, 2, 3}[:c.queues])
		}
		if c.frames == 0 {
			if err == nil || !strings.Contains(err.Error(), "may have 1024 KiB") ||
				errors.Is(err, unix.ENOBUFS) || counted.most != 0 {
				t.Errorf("%+v: %v, %d bytes mapped", c, err, counted.most)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if counted.most != c.frames || counted.huge || link.Info().Limited != "" {
			t.Errorf("%+v: %d bytes of frames, huge pages %v, limited by %q", c, counted.most,
				counted.huge, link.Info().Limited)
		}
		if err := link.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := (xsk.Config{Interface: "fake0", Memory: -1}).Validate(); err == nil {
		t.Error("less memory than none is valid")
	}
}

// TestHugePages: they are used when they are asked for, and who asks in vain is told how many
// it takes.
func TestHugePages(t *testing.T) {
	fail := false
	k, _ := xsktest.NewWire(xsktest.KernelOptions{Hook: func(call string) error {
		if fail && call == "MapUMEM" {
			return unix.ENOMEM
		}
		return nil
	}}, xsktest.KernelOptions{})
	counted := &mapped{Kernel: k}
	cfg := xsk.Config{Interface: "fake0", Kernel: counted, HugePages: true, Memory: 8 << 20}
	s, err := xsk.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !counted.huge {
		t.Error("the kernel was asked for ordinary pages")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	fail = true
	_, err = xsk.Open(cfg)
	if !errors.Is(err, xsk.ErrHugePages) || !errors.Is(err, unix.ENOMEM) ||
		!strings.Contains(err.Error(), "sysctl vm.nr_hugepages=4") {
		t.Error(err)
	}
	cfg.HugePages = false
	if _, err = xsk.Open(cfg); err == nil || strings.Contains(err.Error(), "huge") {
		t.Error(err)
	}
}

// awake is a kernel whose driver looks at the TX ring by itself, and says so.
type awake struct{ *xsktest.Kernel }

func (k awake) MapDescRing(fd int, kind xsk.RingKind, n uint32) (xsk.RingMemory[xsk.Desc], error) {
	m, err := k.Kernel.MapDescRing(fd, kind, n)
	if err == nil && kind == xsk.TxRing {
		m.Flags.Store(0)
	}
	return m, err
}

// TestBusyPollSends: a zero-copy driver that prefers busy polling sends in our calls, though it
// does not ask for them.
func TestBusyPollSends(t *testing.T) {
	for _, busy := range []int{0, 20} {
		k, _ := xsktest.NewWire(xsktest.KernelOptions{ZeroCopy: true}, xsktest.KernelOptions{})
		cfg := small(awake{k})
		cfg.BusyPoll = busy
		s, err := xsk.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var f [1]xsk.TxFrame
		if s.Reserve(f[:]) != 1 {
			t.Fatal("no frame to send")
		}
		f[0].Len = 64
		s.Transmit(f[:])
		if pending := s.Pending(); pending != (busy > 0) {
			t.Errorf("busy polling for %d us: pending %v", busy, pending)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		st, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if (st.TxKicks > 0) != (busy > 0) {
			t.Errorf("busy polling for %d us: %d send calls", busy, st.TxKicks)
		}
	}
}
