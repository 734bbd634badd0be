package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// childEnv makes the test binary a process that attaches to the interface with
// this index and waits for its end.
const childEnv = "XROCE_BPF_TEST_IFINDEX"

func TestMain(m *testing.M) {
	if index := os.Getenv(childEnv); index != "" {
		os.Exit(childMain(index))
	}
	os.Exit(m.Run())
}

func childMain(index string) int {
	var p *Program
	ifindex, err := strconv.Atoi(index)
	if err == nil {
		p, err = Attach(ifindex, Options{Mode: Native})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("attached")
	bufio.NewReader(os.Stdin).ReadByte() // until killed, or until the parent is gone
	runtime.KeepAlive(p)
	return 0
}

func TestAttachModes(t *testing.T) {
	for _, c := range []struct {
		ask, get Mode
		kernel   uint32 // XDP_ATTACHED_DRV, XDP_ATTACHED_SKB
	}{
		{Auto, Native, 1}, {Native, Native, 1}, {Generic, Generic, 2},
	} {
		t.Run(c.ask.String(), func(t *testing.T) {
			n := newNetwork(t, 1500, nil)
			p := n.attach(t, Options{Mode: c.ask})
			if p.Mode() != c.get || p.NativeErr() != nil {
				t.Errorf("mode %v (%v), want %v", p.Mode(), p.NativeErr(), c.get)
			}
			if x := n.xdpOf(t); x.AttachMode != c.kernel {
				t.Errorf("kernel says %+v, want attach mode %d", x, c.kernel)
			}
			if made, err := netlink.LinkByIndex(n.dev.Index); err != nil {
				t.Error(err)
			} else if want := made.Attrs().NumRxQueues; p.Queues() != want {
				t.Errorf("%d queues, the device has %d", p.Queues(), want)
			}
			for range 2 {
				if err := p.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
			if x := n.xdpOf(t); x.Attached {
				t.Errorf("still attached after Close: %+v", x)
			}
			if err := p.Own(V1Key(ownMAC)); !errors.Is(err, ErrClosed) {
				t.Errorf("Own after Close: %v", err)
			}
			if _, err := p.Counters(); !errors.Is(err, ErrClosed) {
				t.Errorf("Counters after Close: %v", err)
			}
		})
	}
}

// A device whose driver has no XDP at all: the loopback of a new namespace.
func TestAttachFallsBack(t *testing.T) {
	requireXDP(t)
	enterNamespace(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	checkFallback(t, lo.Attrs().Index, unix.EOPNOTSUPP, "generic")
}

// A veth that refuses natively: the peer has more queues.
func TestAttachFallsBackFromQueues(t *testing.T) {
	n := newNetwork(t, 1500, func(v *netlink.Veth) {
		// The kernel looks at these two even for the number that the peer starts with.
		v.NumTxQueues, v.NumRxQueues = 1, 1
		v.PeerNumTxQueues = 4
	})
	checkFallback(t, n.dev.Index, unix.ENOSPC, "ethtool -L")
}

// checkFallback wants errno and a hint from native mode, and generic from auto.
func checkFallback(t *testing.T, ifindex int, errno unix.Errno, hint string) {
	t.Helper()
	_, err := Attach(ifindex, Options{Mode: Native})
	if !errors.Is(err, errno) || !strings.Contains(fmt.Sprint(err), hint) {
		t.Errorf("native: %v, want %v with a hint at %q", err, errno, hint)
	}
	p, err := Attach(ifindex, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Mode() != Generic || !errors.Is(p.NativeErr(), errno) {
		t.Errorf("auto: %v (%v), want generic (%v)", p.Mode(), p.NativeErr(), errno)
	}
}

// More than a page a frame, which native veth takes from frags programs only.
func TestAttachLargeMTU(t *testing.T) {
	n := newNetwork(t, 4200, nil)
	p := n.attach(t, Options{Mode: Native})
	key, err := AddrKey(ownIPv4)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Own(key); err != nil {
		t.Fatal(err)
	}
	n.echo(t, ourAddr4, 4000, 4100)
	before, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	n.echo(t, ourAddr4, 4791, 4100)
	after, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	have := Count{
		after[PassNoSocket].Packets - before[PassNoSocket].Packets,
		after[PassNoSocket].Bytes - before[PassNoSocket].Bytes,
	}
	if want := (Count{1, 14 + 20 + 8 + 4100}); have != want {
		t.Errorf("counted %+v for one packet, want %+v", have, want)
	}
}

func TestForeignProgram(t *testing.T) {
	const drv = 1 << 2 // XDP_FLAGS_DRV_MODE
	for _, c := range []struct {
		name  string
		plant func(*testing.T, *network)
	}{
		{"link native", func(t *testing.T, n *network) { n.linkForeign(t, link.XDPDriverMode) }},
		{"link generic", func(t *testing.T, n *network) { n.linkForeign(t, link.XDPGenericMode) }},
		{"netlink", func(t *testing.T, n *network) {
			if err := netlink.LinkSetXdpFdWithFlags(n.dev, foreign(t).FD(), drv); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, 1500, nil)
			c.plant(t, n)
			before := n.xdpOf(t)
			for mode := Auto; mode <= Generic; mode++ {
				p, err := Attach(n.dev.Index, Options{Mode: mode})
				if err == nil {
					p.Close()
				}
				if !errors.Is(err, ErrForeignProgram) || !errors.Is(err, unix.EBUSY) {
					t.Fatalf("%v: %v, want ErrForeignProgram and EBUSY", mode, err)
				}
				cure := "bpftool link detach id "
				if c.name == "netlink" {
					cure = "ip link set dev ours0 xdp off"
				}
				parts := []string{
					"id " + fmt.Sprint(before.ProgId), strconv.Quote("stranger"), "ours0", cure,
				}
				if c.name != "netlink" {
					parts = append(parts, fmt.Sprintf("of pid %d (", os.Getpid()), ", link id ")
				}
				for _, part := range parts {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
			}
			if after := n.xdpOf(t); after != before || after.ProgId == 0 {
				t.Errorf("programs changed from %+v to %+v", before, after)
			}
		})
	}
}

// The same, when the stranger comes between the look and the attempt.
func TestForeignProgramRace(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	dev, err := readDevice(n.dev.Index)
	if err != nil {
		t.Fatal(err)
	}
	n.linkForeign(t, link.XDPDriverMode)
	var objs xdpObjects
	if err := load(&objs, 1); err != nil {
		t.Fatal(err)
	}
	defer objs.Close()
	for mode := Auto; mode <= Generic; mode++ {
		_, err := attach(objs.Xroce, n.dev.Index, dev, mode)
		if !errors.Is(err, ErrForeignProgram) {
			t.Errorf("%v: %v, want ErrForeignProgram", mode, err)
		}
	}
}

// A killed process leaves nothing attached.
func TestLinkDiesWithProcess(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+strconv.Itoa(n.dev.Index))
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	attached := n.xdpOf(t)
	if killErr := child.Process.Kill(); killErr != nil {
		t.Error(killErr)
	}
	child.Wait() // "signal: killed"
	if err != nil || said != "attached\n" {
		t.Fatalf("child says %q, %v", said, err)
	}
	if attached.ProgId == 0 {
		t.Error("child attached nothing")
	}
	eventually(t, "the program is detached", func() bool { return !n.xdpOf(t).Attached })
	n.attach(t, Options{Mode: Native})
}

func TestAttachArguments(t *testing.T) {
	for _, c := range []struct {
		ifindex int
		opts    Options
		want    string
	}{
		{0, Options{}, "interface index 0"},
		{-1, Options{}, "interface index -1"},
		{1, Options{Mode: 3}, "Mode(3)"},
		{1, Options{Queues: -1}, "-1 queues"},
		{1, Options{Queues: maxQueues + 1}, "65537 queues"},
	} {
		_, err := Attach(c.ifindex, c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Attach(%d, %+v): %v, want %q", c.ifindex, c.opts, err, c.want)
		}
	}
	requireXDP(t)
	enterNamespace(t)
	if _, err := Attach(12345, Options{}); !errors.Is(err, unix.ENODEV) {
		t.Errorf("no such interface: %v", err)
	}
}

// TestChoose: generic mode is for drivers that have no native one, not for what passes.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		native error
		mode   Mode // 0 for an error
	}{
		{nil, Native},
		{unix.EOPNOTSUPP, Generic},
		{unix.EINVAL, Generic},
		{unix.ERANGE, Generic},
		{unix.ENOSPC, Generic},
		{unix.ENOMEM, 0},
		{unix.EMFILE, 0},
		{unix.ENFILE, 0},
		{unix.EBUSY, 0},
		{unix.EEXIST, 0},
		{unix.EPERM, 0},
		{unix.ENODEV, 0},
		{unix.EIO, 0},
		{errors.New("unknown"), 0},
	} {
		native := c.native
		if native != nil {
			native = attachError(fmt.Errorf("create link: %w", native), 0, device{}, Native)
		}
		got, err := choose(Auto, func(m Mode) (link.Link, error) {
			if m == Native {
				return nil, native
			}
			return nil, nil
		})
		if got.mode != c.mode || (err != nil) != (c.mode == 0) || err != nil && err != native {
			t.Errorf("native %v: mode %v, %v", c.native, got.mode, err)
		}
		if (c.mode == Generic) != (got.nativeErr != nil) {
			t.Errorf("native %v: the reason is %v", c.native, got.nativeErr)
		}
	}
}

// TestHolder names a process with its command line, which is text of somebody.
func TestHolder(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	child := exec.Command(os.Args[0], "two words", "\x1b[2Jred")
	child.Env = append(os.Environ(), childEnv+"="+strconv.Itoa(n.dev.Index))
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}()
	if said, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || said != "attached\n" {
		t.Fatalf("child says %q, %v", said, err)
	}
	_, err = Attach(n.dev.Index, Options{})
	want := fmt.Sprintf("another XDP program, of pid %d (%s two words \\x1b[2Jred): program id ",
		child.Process.Pid, os.Args[0])
	if !errors.Is(err, ErrForeignProgram) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("%v, want %q in it", err, want)
	}
}

// TestLinkOf reads what kernels say of links.
func TestLinkOf(t *testing.T) {
	const xdp = "pos:\t0\nflags:\t02000000\nlink_type:\txdp\nlink_id:\t9\n" +
		"prog_tag:\t123\nprog_id:\t77\nifindex:\t3\n"
	for info, want := range map[string]uint32{
		xdp: 9, strings.Replace(xdp, "xdp", "tcx", 1): 0, "": 0,
		strings.Replace(xdp, "\t77", "\t78", 1): 0, strings.Replace(xdp, "\t9", "\tx", 1): 0,
	} {
		if id, ok := linkOf(info, 77); ok != (want != 0) || ok && id != want {
			t.Errorf("%q: %d, %v", info, id, ok)
		}
	}
}

func TestAttachHints(t *testing.T) {
	for _, c := range []struct {
		errno unix.Errno
		mode  Mode
		want  string
	}{
		{unix.EPERM, Native, "CAP_BPF"},
		{unix.EOPNOTSUPP, Native, "generic mode"},
		{unix.ERANGE, Native, "MTU of the veth peer"},
		{unix.ENOSPC, Native, "ethtool -L"},
		{unix.EEXIST, Generic, "bond"},
		{unix.EBUSY, Generic, "try again"},
		{unix.EINVAL, Native, "LRO"},
		{unix.ENODEV, Auto, "namespace"},
	} {
		if os.Geteuid() == 0 && c.errno == unix.EPERM {
			c.want = "capabilities"
		}
		wrapped := fmt.Errorf("attach: %w", c.errno)
		if hint := attachHint(wrapped, c.mode); !strings.Contains(hint, c.want) {
			t.Errorf("%v in mode %v: %q, want %q", c.errno, c.mode, hint, c.want)
		}
	}
	if hint := attachHint(unix.EIO, Native); hint != "" {
		t.Errorf("EIO: %q", hint)
	}
}
