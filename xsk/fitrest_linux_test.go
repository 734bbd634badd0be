package xsk_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// TestOpenFitsTheRest: who says how many frames there are one way gets those, and as many the other
// way as there is memory for; or nothing, and is told how much it takes and how much there is.
func TestOpenFitsTheRest(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		rx, tx, sockets, queues int
		huge                    bool
		memory                  int64
		xsk.MemoryLimits
		want  int    // bytes of frames, 0 for a refusal
		words string // in the reason, or in the error
	}{
		"receives": {
			tx: 64, MemoryLimits: xsk.MemoryLimits{Locked: 8 * mib, Charged: none},
			want: (1536 + 64) * 4096, words: "8192 KiB may be locked",
		},
		"receives on two queues": {
			tx: 64, queues: 2, MemoryLimits: xsk.MemoryLimits{Locked: 8 * mib, Charged: none},
			want: (2*768 + 64) * 4096, words: "8192 KiB may be locked",
		},
		"receives, in a cgroup": {
			tx: 64, MemoryLimits: xsk.MemoryLimits{Locked: none, Charged: 24 * mib, Cgroup: "/s"},
			want: (1536 + 64) * 4096, words: "half of the 24576 KiB that the memory cgroup /s",
		},
		"receives, with enough": {
			tx: 64, MemoryLimits: xsk.MemoryLimits{Locked: 49 * mib, Charged: none},
			want: (xsk.DefaultRxFrames + 64) * 4096,
		},
		"receives, within a bound": {
			tx: 64, memory: 8 * mib, MemoryLimits: xsk.MemoryLimits{Locked: none, Charged: none},
			want: (1536 + 64) * 4096,
		},
		"sends": {
			rx: 64, MemoryLimits: xsk.MemoryLimits{Locked: 8 * mib, Charged: none},
			want: (64 + 1024) * 4096, words: "8192 KiB may be locked",
		},
		"one of four that send": {
			rx: 64, sockets: 4, MemoryLimits: xsk.MemoryLimits{Locked: 8 * mib, Charged: none},
			want:  (64 + 256) * 4096,
			words: "8192 KiB may be locked (ulimit -l, or CAP_IPC_LOCK), by 4",
		},
		"one of four in a cgroup": {
			rx: 64, sockets: 4, MemoryLimits: xsk.MemoryLimits{
				Locked: none, Charged: 24 * mib, Cgroup: "/s",
			},
			want: (64 + 512) * 4096, words: "has left may be taken, by 4 sockets",
		},
		"too many to send": {
			tx: 4096, MemoryLimits: xsk.MemoryLimits{Locked: 8 * mib, Charged: none},
			words: "768 to receive on each of 1 queues and 4096 to send, need 19456 KiB at " +
				"least, and 8192 KiB may be locked",
		},
		"too many both ways": {
			rx: 2048, tx: 64, MemoryLimits: xsk.MemoryLimits{Locked: 8 * mib, Charged: none},
			words: "need 8448 KiB at least, and 8192 KiB may be locked",
		},
		"too many for a cgroup": {
			rx: 2048, tx: 64, MemoryLimits: xsk.MemoryLimits{
				Locked: none, Charged: 8 * mib, Cgroup: "/s",
			},
			words: "need 8448 KiB at least, and the 8192 KiB that the memory cgroup /s has left",
		},
		"all of a cgroup": {
			rx: 2048, tx: 64, MemoryLimits: xsk.MemoryLimits{
				Locked: none, Charged: 9 * mib, Cgroup: "/s",
			},
			want: (2048 + 64) * 4096,
		},
		"huge pages, which no cgroup is charged for": {
			rx: 2048, tx: 64, huge: true, MemoryLimits: xsk.MemoryLimits{
				Locked: none, Charged: 8 * mib, Cgroup: "/s",
			},
			want: (2048 + 64) * 4096,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, _ := xsktest.NewWire(
				xsktest.KernelOptions{Queues: max(1, c.queues), Limits: c.MemoryLimits},
				xsktest.KernelOptions{})
			counted := &mapped{Kernel: k}
			queues := []int{0, 1}[:max(1, c.queues)]
			link, err := xsk.OpenGroup(xsk.Config{
				Interface: "fake0", RxFrames: c.rx, TxFrames: c.tx, Sockets: c.sockets,
				Memory: c.memory, HugePages: c.huge, Kernel: counted,
			}, queues)
			if c.want == 0 {
				errno := error(unix.ENOBUFS)
				if c.Cgroup != "" {
					errno = unix.ENOMEM
				}
				if !errors.Is(err, errno) || !strings.Contains(err.Error(), c.words) {
					t.Errorf("%v, want %q", err, c.words)
				}
				if counted.most != 0 {
					t.Errorf("%d bytes were mapped all the same", counted.most)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			limited := link.Info().Limited
			if counted.most != c.want || !strings.Contains(limited, c.words) ||
				(limited == "") != (c.words == "") {
				t.Errorf("%d bytes of frames, want %d; limited by %q, want %q", counted.most,
					c.want, limited, c.words)
			}
		})
	}
}

// TestOpenTheRestBesideOthers: others of the user have locked some, so only the frames that nobody
// counted become fewer; and when they are as few as may be, the error has the numbers.
func TestOpenTheRestBesideOthers(t *testing.T) {
	const most = (768 + 64) * 4096 // of what is still to be had
	k, _ := xsktest.NewWire(xsktest.KernelOptions{
		Limits: xsk.MemoryLimits{Locked: 64 << 20, Charged: none},
	}, xsktest.KernelOptions{})
	busy := &crowded{Kernel: k, most: most}
	s, err := xsk.Open(xsk.Config{Interface: "fake0", TxFrames: 64, Kernel: busy})
	if err != nil {
		t.Fatal(err)
	}
	info := s.Info()
	if busy.tries != 5 || info.TxFrames != 64 || !strings.Contains(info.Limited, "by others") {
		t.Errorf("%d tries, %+v", busy.tries, info)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	busy.most--
	_, err = xsk.Open(xsk.Config{Interface: "fake0", TxFrames: 64, Kernel: busy})
	if !errors.Is(err, unix.ENOBUFS) || !strings.Contains(err.Error(),
		"3328 KiB of frames are over the locked-memory limit of 65536 KiB, with what this user") {
		t.Error(err)
	}
	if leaks := k.Leaks(); len(leaks) > 0 {
		t.Error(leaks)
	}
}

// crowded is a kernel that has so many bytes left to lock.
type crowded struct {
	*xsktest.Kernel
	most, tries int
}

func (c *crowded) RegisterUMEM(fd int, mem []byte, chunkSize uint32) error {
	if c.tries++; len(mem) > c.most {
		return unix.ENOBUFS
	}
	return c.Kernel.RegisterUMEM(fd, mem, chunkSize)
}
