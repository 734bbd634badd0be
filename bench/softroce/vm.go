package softroce

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest/timeout"
)

// Config says what VM to boot.
type Config struct {
	// Number tells VMs of one network apart: it is in the MAC address.
	Number uint8
	MTU    int            // of the VM's interface: 1500 gives a path MTU of 1024
	Addrs  []netip.Prefix // of the VM's interface, in the order of the GIDs from 1 on
}

// Device is the name of the RDMA device in the VM. Its GID 0 is the link-local
// one; those of Config.Addrs follow, IPv4 first.
const Device = "rxe0"

// agentPackage is what runs in the guest.
const agentPackage = "xroce/bench/softroce/agent"

// initScript is the guest's first process.
//
//go:embed guest/init
var initScript []byte

// A VM is a running Soft-RoCE host. Safe for concurrent use.
type VM struct {
	qemu    *exec.Cmd
	dir     string // for the socket and the root, until Close
	port    *os.File
	console *tail
	guest   *guest
	exited  chan struct{} // closed when QEMU has ended
	once    sync.Once
	err     error
}

// Boot starts a VM and waits until it can be ordered to do something, some
// seconds. It builds the agent, so it must be called within this module, where
// there is Go.
func Boot(ctx context.Context, image Image, c Config) (*VM, error) {
	name, err := ownName()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return nil, fmt.Errorf("softroce: %w", err)
	}
	v := &VM{dir: dir, console: &tail{limit: 16 << 10}, exited: make(chan struct{})}
	if err := v.boot(ctx, image, c); err != nil {
		if text := v.console.String(); text != "" {
			err = fmt.Errorf("%w\nthe end of the guest's console:\n%s", err, lastLines(text))
		}
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

func (v *VM) boot(ctx context.Context, image Image, c Config) error {
	root := filepath.Join(v.dir, "root")
	if err := makeRoot(ctx, root, image); err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	// QEMU connects to a socket that is there already, so nobody has to wait for
	// one to appear.
	socket := filepath.Join(v.dir, "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	defer listener.Close()
	ours, theirs, err := framePair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	v.port = ours
	v.qemu = exec.Command("qemu-system-x86_64", qemuArgs(image, root, socket, c)...)
	v.qemu.ExtraFiles = []*os.File{theirs} // descriptor 3
	v.qemu.Stdout, v.qemu.Stderr = v.console, v.console
	// An interrupt from the terminal is for us; we end QEMU.
	v.qemu.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := v.qemu.Start(); err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	go func() {
		_ = v.qemu.Wait() // what it says is on the console
		close(v.exited)
		listener.Close()
	}()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	if err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("softroce: QEMU did not start: %w", err))
	}
	v.guest = newGuest(conn)
	if err := v.guest.awaitReady(ctx); err != nil {
		return fmt.Errorf("softroce: the guest did not come up: %w", err)
	}
	return nil
}

// qemuArgs is the command line: a PC without anything that is not needed, in
// software emulation whatever the processor could do.
func qemuArgs(image Image, root, socket string, c Config) []string {
	cmdline := fmt.Sprintf("console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable no_timer_check "+
		"audit=0 apparmor=0 mitigations=off net.ifnames=0 xroce.mtu=%d", c.MTU)
	for _, addr := range c.Addrs {
		cmdline += " xroce.addr=" + addr.String()
	}
	return []string{
		"-accel", "tcg,thread=multi", "-machine", "pc,vmport=off,usb=off", "-cpu", "max",
		"-m", "384", "-display", "none", "-vga", "none", "-nodefaults", "-no-reboot",
		"-kernel", image.Kernel, "-initrd", root, "-append", cmdline,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-netdev", "dgram,id=net,local.type=fd,local.str=3",
		"-device", fmt.Sprintf("virtio-net-pci,netdev=net,romfile=,mac=52:54:00:72:78:%02x",
			c.Number),
		"-device", "virtio-serial-pci",
		"-chardev", "socket,id=agent,path=" + socket,
		"-device", "virtserialport,chardev=agent,name=xroce.agent",
		"-device", "virtio-rng-pci",
	}
}

// makeRoot writes the guest's first root: what is in the packages, and behind it
// what is ours.
func makeRoot(ctx context.Context, file string, image Image) error {
	agent := filepath.Join(filepath.Dir(file), "agent.bin")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", agent,
		agentPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", agentPackage, err, out)
	}
	program, err := os.ReadFile(agent)
	if err != nil {
		return err
	}
	base, err := os.Open(image.Root)
	if err != nil {
		return err
	}
	defer base.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, base)
	c := &cpioWriter{w: out, err: err}
	c.file("init", 0o755, initScript)
	c.file("usr/bin/agent", 0o755, program)
	return errors.Join(c.close(), out.Close())
}

// framePair makes two ends of a wire that carries whole frames.
func framePair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX,
		unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("softroce: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "vm"), os.NewFile(uintptr(fds[1]), "vm"), nil
}

// Port is the network's side of the VM's interface, for NewCable.
func (v *VM) Port() *os.File { return v.port }

// Console returns the end of what the guest's kernel printed.
func (v *VM) Console() string { return v.console.String() }

// checkTime is how long a VM may take for a command that does nothing.
const checkTime = 20 * time.Second

// Check returns nil when the VM still obeys, and else ErrGone with the end of what its
// kernel said.
func (v *VM) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(checkTime))
	defer cancel()
	_, _, err := v.Run(ctx, "true")
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrGone) {
		err = fmt.Errorf("%w: it does not answer: %w", ErrGone, err)
	}
	select {
	case <-v.exited:
		err = fmt.Errorf("%w: QEMU has ended: %v", err, v.qemu.ProcessState)
	default:
	}
	if text := strings.TrimSpace(v.Console()); text != "" {
		err = fmt.Errorf("%w\nthe end of the guest's console:\n%s", err, lastLines(text))
	}
	return err
}

// closeTime is how long QEMU may take to end before it is killed.
const closeTime = 3 * time.Second

// Close ends the VM and removes its files. It is idempotent.
func (v *VM) Close() error {
	v.once.Do(func() {
		if v.guest != nil {
			v.err = v.guest.close()
		}
		if v.qemu != nil && v.qemu.Process != nil {
			_ = v.qemu.Process.Signal(unix.SIGTERM) // it may have ended
			select {
			case <-v.exited:
			case <-time.After(closeTime):
				_ = v.qemu.Process.Kill()
				<-v.exited
			}
		}
		if v.port != nil {
			v.err = errors.Join(v.err, closed(v.port.Close()))
		}
		v.err = errors.Join(v.err, os.RemoveAll(v.dir))
	})
	return v.err
}

// A tail keeps the end of what is written to it. Safe for concurrent use.
type tail struct {
	limit int // bytes kept

	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if extra := t.buf.Len() - t.limit; extra > 0 {
		t.buf.Next(extra)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(t.buf.String(), "\r", "")
}
