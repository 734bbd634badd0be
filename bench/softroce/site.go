package softroce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// TapName is the name of a site's interface.
const TapName = "xr0"

// txQueueLen is how many frames wait in a tap for the cable; what exceeds it is
// dropped. It is more than a window of packets of any connection.
const txQueueLen = 8192

// sites numbers the sites of one process.
var sites atomic.Int64

// A Site is a network namespace with a tap device, where a stack is tested.
type Site struct {
	Namespace string // its name, as in `ip netns`

	tap []*os.File // its queues
}

// NewSite makes a site whose interface has a number of queues, and addresses. One without
// addresses is the wire of a VM and no host: it says nothing of its own accord.
func NewSite(ctx context.Context, queues, mtu int, addrs ...netip.Prefix) (*Site, error) {
	name, err := ownName()
	if err != nil {
		return nil, err
	}
	s := &Site{Namespace: name + strconv.FormatInt(sites.Add(1), 10)}
	if err := ip(ctx, "netns", "add", s.Namespace); err != nil {
		return nil, err
	}
	if err := s.build(ctx, queues, mtu, addrs); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Site) build(ctx context.Context, queues, mtu int, addrs []netip.Prefix) error {
	err := s.do(func() error {
		for range queues {
			queue, err := openTap(TapName, queues > 1)
			if err != nil {
				return err
			}
			s.tap = append(s.tap, queue)
		}
		return quiet(TapName, len(addrs) == 0)
	})
	if err != nil {
		return err
	}
	lines := []string{
		"link set lo up",
		"link set " + TapName + " txqueuelen " + strconv.Itoa(txQueueLen),
		"link set " + TapName + " mtu " + strconv.Itoa(mtu) + " up",
	}
	for _, addr := range addrs {
		lines = append(lines, "addr add "+addr.String()+" dev "+TapName+" nodad")
	}
	for _, line := range lines {
		if err := s.ip(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// openTap makes a tap in the namespace of this thread, or one more queue of it. It lives as
// long as a descriptor.
func openTap(name string, queues bool) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("softroce: /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("softroce: %w", err), unix.Close(fd))
	}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if queues {
		flags |= unix.IFF_MULTI_QUEUE
	}
	request.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(fmt.Errorf("softroce: make tap %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// quiet keeps the kernel from sending of its own accord on an interface in the
// namespace of this thread. A mute one has no IPv6 at all.
func quiet(name string, mute bool) error {
	keys := map[string]string{
		"accept_dad": "0", "dad_transmits": "0", "router_solicitations": "0", "autoconf": "0",
	}
	if mute {
		keys["disable_ipv6"] = "1"
	}
	for key, value := range keys {
		file := filepath.Join("/proc/sys/net/ipv6/conf", name, key)
		err := os.WriteFile(file, []byte(value), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return fmt.Errorf("softroce: %w", err)
		}
	}
	return nil
}

// Port is the network's side of a tap of one queue, for NewCable.
func (s *Site) Port() *os.File { return s.tap[0] }

// Queues are the network's sides of the tap's queues, for Config.Tap.
func (s *Site) Queues() []*os.File { return s.tap }

// SetMTU changes the MTU of the interface.
func (s *Site) SetMTU(ctx context.Context, mtu int) error {
	return s.ip(ctx, "link set "+TapName+" mtu "+strconv.Itoa(mtu))
}

// Command prepares a program to run in the namespace.
func (s *Site) Command(ctx context.Context, argv ...string) *exec.Cmd {
	argv = append([]string{"netns", "exec", s.Namespace}, argv...)
	return exec.CommandContext(ctx, "ip", argv...)
}

// Close removes the tap and the namespace's name. It is idempotent.
func (s *Site) Close() error {
	var err error
	for _, queue := range s.tap {
		err = errors.Join(err, closed(queue.Close()))
	}
	if remove := netns.DeleteNamed(s.Namespace); !errors.Is(remove, fs.ErrNotExist) {
		err = errors.Join(err, remove)
	}
	return err
}

func (s *Site) ip(ctx context.Context, line string) error {
	return ip(ctx, append([]string{"-n", s.Namespace}, strings.Fields(line)...)...)
}

// ip runs the program of that name.
func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("softroce: ip %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

// do runs f on a thread inside of the namespace.
func (s *Site) do(f func() error) error {
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, because it stays locked.
		runtime.LockOSThread()
		ns, err := netns.GetFromName(s.Namespace)
		if err != nil {
			done <- fmt.Errorf("softroce: namespace %s: %w", s.Namespace, err)
			return
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			done <- fmt.Errorf("softroce: enter %s: %w", s.Namespace, err)
			return
		}
		done <- f()
	}()
	return <-done
}
