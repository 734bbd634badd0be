package engine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"xroce/engine/pager"
	"xroce/roce"
	"xroce/roce/mem"
)

// Advice says what is going to happen to memory (enum ib_uverbs_advise_mr_advice).
type Advice uint32

// The kinds of advice.
const (
	// AdvicePrefetch brings pages in for reading, AdvicePrefetchWrite for writing.
	AdvicePrefetch      Advice = 0
	AdvicePrefetchWrite Advice = 1
	// AdvicePrefetchNoFault brings nothing in: it makes what is present known.
	AdvicePrefetchNoFault Advice = 2
)

// AdviseFlags change how advice is taken.
type AdviseFlags uint32

// AdviseFlush returns when all is done, and tells how it went. Without it the work goes
// on in the background: that is best effort, and errors of it are lost.
const AdviseFlush AdviseFlags = 1 << 0

// An AdviseError says why advice was refused. Its Unwrap gives the errno that
// ibv_advise_mr would return.
type AdviseError struct {
	SGE    roce.SGE // the range that it is about, zero when it is about none
	Reason string
	Errno  unix.Errno
}

// Error describes the refusal.
func (e *AdviseError) Error() string {
	if e.SGE == (roce.SGE{}) {
		return fmt.Sprintf("engine: advise: %s: %v", e.Reason, e.Errno)
	}
	return fmt.Sprintf("engine: advise %d bytes at %#x with key 0x%08x: %s: %v", e.SGE.Length,
		e.SGE.Addr, e.SGE.LKey, e.Reason, e.Errno)
}

// Unwrap returns the errno.
func (e *AdviseError) Unwrap() error { return e.Errno }

// AdviseMR gives advice on ranges of regions with on-demand paging (ibv_advise_mr). All
// are checked before the first is acted on. The error is an *AdviseError of
//
//	ENOTSUP  the advice is not known
//	EINVAL   a flag is not known, the PD is not the device's or not the region's, the key
//	         is a memory window's
//	EFAULT   no region has the key, or it is invalid; the range is not in the region; memory is not
//	         mapped or cannot be had (with AdviseFlush alone)
//	ENOENT   the region is not one with on-demand paging
//	EPERM    AdvicePrefetchWrite on a region without LOCAL_WRITE
//
// A key of another device is one that no region has.
func (d *Device) AdviseMR(pd *PD, advice Advice, flags AdviseFlags, list []roce.SGE) error {
	switch {
	case advice > AdvicePrefetchNoFault:
		return &AdviseError{Reason: fmt.Sprintf("no advice %d", advice), Errno: unix.ENOTSUP}
	case flags&^AdviseFlush != 0:
		return &AdviseError{Reason: fmt.Sprintf("flags %#x", uint32(flags)), Errno: unix.EINVAL}
	}
	if err := pd.check(d); err != nil {
		return &AdviseError{Reason: err.Error(), Errno: unix.EINVAL}
	}
	regions := make([]*MR, len(list))
	for i, s := range list {
		var err *AdviseError
		if regions[i], err = d.adviseTarget(pd, advice, s); err != nil {
			return err
		}
	}
	for i, s := range list {
		if err := regions[i].advise(advice, flags, s); err != nil {
			return err
		}
	}
	return nil
}

// Advise is Device.AdviseMR for n bytes of the region, off bytes behind its beginning.
func (m *MR) Advise(off, n uint64, advice Advice, flags AdviseFlags) error {
	s := roce.SGE{Addr: m.Addr() + off, LKey: m.LKey()}
	if off > m.core.Len() || n > m.core.Len()-off {
		return &AdviseError{SGE: s, Reason: mem.FaultOutOfRange.String(), Errno: unix.EFAULT}
	}
	for {
		// An SGE has room for less than 4 GiB.
		part := min(n, 1<<30)
		s.Length = uint32(part)
		if err := m.device.AdviseMR(m.PD(), advice, flags, []roce.SGE{s}); err != nil {
			return err
		}
		if n -= part; n == 0 {
			return nil
		}
		s.Addr += part
	}
}

// adviseTarget returns the region of a range, if it may be given the advice.
func (d *Device) adviseTarget(pd *PD, advice Advice, s roce.SGE) (*MR, *AdviseError) {
	refuse := func(reason string, errno unix.Errno) (*MR, *AdviseError) {
		return nil, &AdviseError{SGE: s, Reason: reason, Errno: errno}
	}
	switch f := d.checkKey(pd, s); f {
	case mem.OK:
	case mem.FaultRights:
		return refuse("the key is a memory window's", unix.EINVAL)
	case mem.FaultDomain:
		return refuse(f.String(), unix.EINVAL)
	default:
		return refuse(f.String(), unix.EFAULT)
	}
	d.paging.mu.Lock()
	m := d.paging.regions[keyIndex(s.LKey)]
	d.paging.mu.Unlock()
	switch {
	case m == nil:
		return refuse("not a region with on-demand paging", unix.ENOENT)
	case advice == AdvicePrefetchWrite && m.core.Access()&mem.LocalWrite == 0:
		return refuse("the region may not be written", unix.EPERM)
	}
	return m, nil
}

// checkKey looks at a key as those do who move packets, with a progress lock: see quiesce.
func (d *Device) checkKey(pd *PD, s roce.SGE) mem.Fault {
	q := d.queues[0]
	q.lock()
	defer q.mu.Unlock()
	return d.keys.Check(pd.core.Local(), s.LKey, s.Addr, int(s.Length), 0)
}

// advise acts on a range that was checked.
func (m *MR) advise(advice Advice, flags AdviseFlags, s roce.SGE) error {
	where := pager.Range{Addr: s.Addr, Length: uint64(s.Length)}
	where.Addr += m.odp.Range().Addr - m.Addr()
	var err error
	if advice == AdvicePrefetchNoFault {
		err = m.odp.Map(where)
	} else {
		err = m.odp.Prefetch(where, advice == AdvicePrefetchWrite, flags&AdviseFlush != 0)
	}
	var errno unix.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &errno):
		return &AdviseError{
			SGE: s, Reason: "memory cannot be had: " + errno.Error(), Errno: unix.EFAULT,
		}
	}
	return &AdviseError{SGE: s, Reason: err.Error(), Errno: unix.EFAULT}
}
