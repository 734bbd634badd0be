package xsk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// none is no limit.
const none = xsk.Unlimited

// TestOpenWithinLimits opens sockets for processes that may have little memory: what is
// allocated and locked is within the limits, or nothing is.
func TestOpenWithinLimits(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		mtu  int
		xsk.MemoryLimits
		want    int    // bytes of frames, 0 for a refusal
		limited string // is in the reason
	}{
		{"no limit", 1500, xsk.MemoryLimits{Locked: none, Charged: none}, 56 * mib, ""},
		{"large frames", 9000, xsk.MemoryLimits{Locked: none, Charged: none}, 64 * mib, ""},
		{"enough", 1500, xsk.MemoryLimits{Locked: 56 * mib, Charged: 112 * mib}, 56 * mib, ""},
		{
			"a little less", 1500,
			xsk.MemoryLimits{Locked: 56*mib - 1, Charged: none},
			28 * mib,
			"57343 KiB may be locked",
		},
		{
			"as systemd has it", 4200,
			xsk.MemoryLimits{Locked: 8 * mib, Charged: none},
			8 * mib,
			"8192 KiB may be locked (ulimit -l",
		},
		{
			"cgroup", 1500,
			xsk.MemoryLimits{Locked: none, Charged: 24 * mib, Cgroup: "/small"},
			7 * mib, "half of the 24576 KiB that the memory cgroup /small has left",
		},
		{
			"least", 4200,
			xsk.MemoryLimits{Locked: none, Charged: 8 * mib, Cgroup: "/small"},
			4 * mib, "half of the 8192 KiB",
		},
		{
			"too little", 4200,
			xsk.MemoryLimits{Locked: none, Charged: 8*mib - 2, Cgroup: "/s"},
			0, "need 4096 KiB at least, and half of the 8191 KiB that the memory cgroup /s ",
		},
		{
			"nothing to lock", 4200,
			xsk.MemoryLimits{Locked: 64 << 10, Charged: none},
			0,
			"need 4096 KiB at least, and 64 KiB may be locked (ulimit -l",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, _ := xsktest.NewWire(
				xsktest.KernelOptions{MTU: c.mtu, Limits: c.MemoryLimits}, xsktest.KernelOptions{})
			counted := &mapped{Kernel: k}
			s, err := xsk.Open(xsk.Config{Interface: "fake0", FillTarget: 1024, Kernel: counted})
			if c.want == 0 {
				errno := error(unix.ENOBUFS)
				if c.Cgroup != "" {
					errno = unix.ENOMEM
				}
				if !errors.Is(err, errno) || !strings.Contains(err.Error(), c.limited) {
					t.Errorf("%v, want %q", err, c.limited)
				}
				if counted.most != 0 {
					t.Errorf("%d bytes were mapped all the same", counted.most)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if counted.most != c.want {
				t.Errorf("%d bytes of frames, want %d", counted.most, c.want)
			}
			limited := s.Info().Limited
			if !strings.Contains(limited, c.limited) || (limited == "") != (c.limited == "") {
				t.Errorf("the reason is %q, want %q", limited, c.limited)
			}
		})
	}
}

// mapped is a kernel that notes the largest memory that it mapped.
type mapped struct {
	xsk.Kernel
	most int
	huge bool // the last one was asked of huge pages
}

func (m *mapped) MapUMEM(size int, huge bool) ([]byte, error) {
	m.most, m.huge = max(m.most, size), huge
	return m.Kernel.MapUMEM(size, huge)
}

// TestOpenBesideOthers: others of the user have locked what the limit allows.
func TestOpenBesideOthers(t *testing.T) {
	tries := 0
	k, _ := xsktest.NewWire(xsktest.KernelOptions{Hook: func(call string) error {
		if call == "RegisterUMEM" {
			if tries++; tries <= 2 {
				return unix.ENOBUFS
			}
		}
		return nil
	}}, xsktest.KernelOptions{})
	s, err := xsk.Open(xsk.Config{Interface: "fake0", Kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	info := s.Info()
	if info.TxFrames != xsk.DefaultTxFrames/4 || !strings.Contains(info.Limited, "by others") {
		t.Errorf("%+v", info)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if leaks := k.Leaks(); len(leaks) > 0 {
		t.Error(leaks)
	}
	// Who says how many frames there shall be gets those, or an error.
	tries = 0
	_, err = xsk.Open(xsk.Config{Interface: "fake0", RxFrames: 4096, TxFrames: 4096, Kernel: k})
	if !errors.Is(err, unix.ENOBUFS) || tries != 1 {
		t.Errorf("%d tries, %v", tries, err)
	}
}

// TestCgroupLimits reads what the memory controller of both versions has.
func TestCgroupLimits(t *testing.T) {
	root := t.TempDir()
	put := func(dir string, files map[string]string) {
		t.Helper()
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("a", map[string]string{"memory.max": "1000", "memory.current": "400"})
	put("a/b", map[string]string{
		"memory.max": "2000", "memory.current": "1590",
		"memory.stat": "anon 900\nfile 100\ninactive_file 60\nactive_file 40\nunevictable 7",
	})
	put("a/b/c", map[string]string{"memory.max": "max", "memory.current": "300"})
	put("full", map[string]string{"memory.max": "10", "memory.current": "12"})
	v1 := map[string]string{
		"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "77",
	}
	put("memory", v1)
	put("memory/small", map[string]string{
		"memory.limit_in_bytes": "500", "memory.usage_in_bytes": "350",
		"memory.stat": "inactive_file 1\ntotal_inactive_file 60\ntotal_active_file 40",
	})
	for groups, want := range map[string]xsk.MemoryLimits{
		"0::/a/b/c\n":                        {Charged: 510, Cgroup: "/a/b"},
		"0::/a\n":                            {Charged: 600, Cgroup: "/a"},
		"0::/full\n":                         {Charged: 0, Cgroup: "/full"},
		"0::/../../a/b\n":                    {Charged: 510, Cgroup: "/a/b"},
		"0::/elsewhere\n":                    {Charged: none},
		"5:cpu:/a\n4:memory:/small\n0::/\n":  {Charged: 250, Cgroup: "/small"},
		"4:cpu,memory:/small/in/container\n": {Charged: 250, Cgroup: "/small"},
		"4:memory:/other\n":                  {Charged: none},
		"4:memory_of_something:/small\n":     {Charged: none},
		"nonsense\n:\n::\n":                  {Charged: none},
		"":                                   {Charged: none},
	} {
		got := xsk.CgroupLimits(groups, root)
		if want.Locked = none; got != want {
			t.Errorf("%q: %+v, want %+v", groups, got, want)
		}
	}
}
