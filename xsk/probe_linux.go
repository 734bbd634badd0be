package xsk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// probeFrames is how many frames each way a probing socket has.
const probeFrames = 64

// Probe tries what the queue of an interface can do by opening and closing a
// socket for each feature. It needs what Open needs. Trying zero-copy makes some
// drivers restart the queue, so a carrier flap is possible on a real device. The
// error is for what keeps every feature from being tried: no such interface, no
// privilege, or a queue that is taken.
func Probe(ifindex, queue int) (Support, error) {
	return probe(Linux(), ifindex, queue)
}

func probe(k Kernel, ifindex, queue int) (Support, error) {
	cfg := Config{
		Ifindex: ifindex, Queue: queue, RxFrames: probeFrames, TxFrames: probeFrames,
		Mode: ModeCopy, MultiBuffer: MultiBufferOff, Kernel: k,
	}
	try := func(name string, change func(*Config)) Feature {
		c := cfg
		change(&c)
		s, err := Open(c)
		if err == nil {
			err = s.Close()
		}
		return Feature{Name: name, OK: err == nil, Err: err}
	}
	s := Support{Copy: try("copy mode", func(*Config) {})}
	for _, fatal := range []error{
		unix.ENODEV, unix.EPERM, unix.EBUSY, unix.EAFNOSUPPORT, unix.ENOBUFS,
	} {
		if errors.Is(s.Copy.Err, fatal) {
			return s, s.Copy.Err
		}
	}
	s.ZeroCopy = try("zero-copy mode", func(c *Config) { c.Mode = ModeZeroCopy })
	s.MultiBuffer = try("multi-buffer frames", func(c *Config) { c.MultiBuffer = MultiBufferOn })
	s.ZeroCopyMultiBuffer = try("multi-buffer frames in zero-copy mode", func(c *Config) {
		c.Mode, c.MultiBuffer = ModeZeroCopy, MultiBufferOn
	})
	s.BusyPoll = try("preferred busy polling", func(c *Config) { c.BusyPoll = 20 })
	err := probeTxBudget(k)
	s.TxBudget = Feature{Name: "send budget", OK: err == nil, Err: err}
	return s, nil
}

// probeTxBudget tries the option that Open does without when it is missing.
func probeTxBudget(k Kernel) (err error) {
	fd, err := k.Socket()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close(fd)) }()
	if err := k.SetRing(fd, TxRing, probeFrames); err != nil {
		return err
	}
	return k.SetTxBudget(fd, probeFrames)
}
