package perf

import (
	"errors"
	"fmt"

	"xroce/engine"
	"xroce/roce/mem"
)

// hugePage is the size of the huge pages of --use_hugepages in bytes.
const hugePage = 2 << 20

// errNoHugePages says that the kernel has not as many huge pages as the test needs.
var errNoHugePages = fmt.Errorf("--use_hugepages: the kernel has too few reserved huge pages of "+
	"2 MiB (sysctl vm.nr_hugepages): %w", errors.ErrUnsupported)

// A region is the memory of an end, registered.
type region struct {
	pd     *engine.PD
	mr     *engine.MR
	source *engine.MR // that mr has its memory from, nil when that is its own or Go's
	memory []byte     // that of mr
}

// newRegion makes and registers n bytes, where the configuration says.
func newRegion(dev *engine.Device, c *Config, n int) (_ *region, err error) {
	r := &region{pd: dev.AllocPD()}
	defer func() {
		if err != nil {
			r.deregister()
		}
	}()
	access := mem.LocalWrite | verbs[c.Test.Verb].access
	switch {
	case c.File != nil:
		if r.source, err = dev.RegFile(r.pd, c.File, c.FileOffset, n, access); err != nil {
			return nil, fmt.Errorf("--mmap: %w", err)
		}
	case c.HugePages:
		// The device asks for huge pages where there is one to fill, and takes others too.
		if r.source, err = dev.AllocMR(r.pd, max(n, hugePage), access); err != nil {
			return nil, fmt.Errorf("--use_hugepages: %w", err)
		}
		if !r.source.Huge() {
			return nil, errNoHugePages
		}
	}
	if r.source != nil {
		r.memory = r.source.Bytes()[:n]
	} else {
		r.memory = make([]byte, n)
	}
	switch {
	case c.ODP:
		if r.mr, err = dev.RegODP(r.pd, r.memory, access); err != nil {
			return nil, fmt.Errorf("--odp: %w", err)
		}
	case r.source != nil:
		r.mr, r.source = r.source, nil
	default:
		if r.mr, err = dev.RegMR(r.pd, r.memory, access); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// of is a region of n bytes: this one, if there is one that is as large, and else another one in
// its place.
func (r *region) of(dev *engine.Device, c *Config, n int) (*region, error) {
	if r == nil || len(r.memory) < n {
		r.deregister() // first: there may not be enough for both
		return newRegion(dev, c, n)
	}
	r.memory = r.memory[:n]
	return r, nil
}

// deregister gives the memory back. Twice is as good as once.
func (r *region) deregister() {
	if r == nil {
		return
	}
	for _, mr := range []*engine.MR{r.mr, r.source} {
		if mr != nil {
			// All that it could say is that it is in use, which nothing is any more.
			_ = mr.Deregister()
		}
	}
	_ = r.pd.Close() // a shared queue may still be of it, until the device is closed
}
