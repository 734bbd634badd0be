package xsk

import "fmt"

// A Feature is one thing that a queue can or cannot do.
type Feature struct {
	Name string // what `xroce check` prints
	OK   bool
	Err  error // why not; nil when OK. errors.Is(Err, unix.EOPNOTSUPP) and so on work
}

// String returns the name and yes, or no with the reason.
func (f Feature) String() string {
	if f.OK {
		return f.Name + ": yes"
	}
	return fmt.Sprintf("%s: no (%v)", f.Name, f.Err)
}

// Support is what Probe found out about a queue.
type Support struct {
	Copy                Feature // frames are copied by the kernel: all one needs
	ZeroCopy            Feature // the driver uses our frames
	MultiBuffer         Feature // frames of two chunks, in copy mode
	ZeroCopyMultiBuffer Feature // frames of two chunks without copies
	BusyPoll            Feature // SO_PREFER_BUSY_POLL
	TxBudget            Feature // XDP_MAX_TX_SKB_BUDGET
}

// Features returns all of them in a fixed order.
func (s Support) Features() []Feature {
	return []Feature{
		s.Copy, s.ZeroCopy, s.MultiBuffer, s.ZeroCopyMultiBuffer, s.BusyPoll, s.TxBudget,
	}
}
