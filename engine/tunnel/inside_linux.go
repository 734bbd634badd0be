package tunnel

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenInside makes a TAP or TUN device, or takes one that is there (ip tuntap add), sets its
// MTU and sets it up. It needs CAP_NET_ADMIN, or to be the owner of the device. Checksums are
// left to us, and with Whole the cutting of TCP.
func OpenInside(c InsideConfig) (_ *Inside, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	i := &Inside{Name: c.Name, Kind: c.Kind, MTU: c.MTU}
	defer func() {
		if err != nil {
			i.Close()
		}
	}()
	for range c.Queues {
		fd, err := openQueue(&c)
		if err != nil {
			return nil, fmt.Errorf("tunnel: interface %s: %w", c.Name, err)
		}
		if c.Polled {
			i.Queues = append(i.Queues, polledFile(fd))
		} else {
			i.Queues = append(i.Queues, os.NewFile(uintptr(fd), c.Name))
		}
	}
	if err := setUp(&c); err != nil {
		return nil, fmt.Errorf("tunnel: interface %s: %w", c.Name, err)
	}
	return i, nil
}

// device is where TAP and TUN devices come from.
const device = "/dev/net/tun"

func openQueue(c *InsideConfig) (fd int, err error) {
	fd, err = unix.Open(device, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: device, Err: err}
	}
	if err := attach(fd, c); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// A polledFile is a descriptor that the poller of the runtime does not know: that would wake a
// thread for each datagram, beside the one that reads it.
type polledFile int

// Poll implements PolledQueue.
func (f polledFile) Poll(func()) int { return int(f) }

// Read implements PolledQueue.
func (f polledFile) Read(b []byte) (int, error) { return rawCall(unix.SYS_READ, int(f), b) }

// Write implements PolledQueue.
func (f polledFile) Write(b []byte) (int, error) { return rawCall(unix.SYS_WRITE, int(f), b) }

// Close closes the descriptor.
func (f polledFile) Close() error { return unix.Close(int(f)) }

func attach(fd int, c *InsideConfig) error {
	flags := uint16(unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if c.Kind == TUN {
		flags |= unix.IFF_TUN
	} else {
		flags |= unix.IFF_TAP
	}
	if c.Queues > 1 {
		flags |= unix.IFF_MULTI_QUEUE
	}
	r, err := unix.NewIfreq(c.Name)
	if err != nil {
		return err
	}
	r.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		switch {
		case errors.Is(err, unix.EBUSY):
			return fmt.Errorf("TUNSETIFF: %w: another program has it", err)
		case errors.Is(err, unix.EINVAL):
			return fmt.Errorf("TUNSETIFF: %w: there is one of another kind, or with another "+
				"number of queues", err)
		}
		return fmt.Errorf("TUNSETIFF: %w", err)
	}
	offload := unix.TUN_F_CSUM
	if c.Whole {
		offload |= unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload); err != nil {
		return fmt.Errorf("TUNSETOFFLOAD: %w", err)
	}
	return nil
}

// setUp sets the MTU and IFF_UP.
func setUp(c *InsideConfig) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq(c.Name)
	if err != nil {
		return err
	}
	r.SetUint32(uint32(c.MTU))
	if err := unix.IoctlIfreq(s, unix.SIOCSIFMTU, r); err != nil {
		return fmt.Errorf("MTU %d: %w", c.MTU, err)
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}
