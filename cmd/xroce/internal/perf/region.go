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

// register makes the memory of an end, where the configuration says, and its region.
func (e *end) register(access mem.Access) (err error) {
	c, n := e.cfg, e.at.size()
	switch {
	case c.File != nil:
		if e.source, err = e.dev.RegFile(e.pd, c.File, c.FileOffset, n, access); err != nil {
			return fmt.Errorf("--mmap: %w", err)
		}
	case c.HugePages:
		// The device asks for huge pages where there is one to fill, and takes others too.
		if e.source, err = e.dev.AllocMR(e.pd, max(n, hugePage), access); err != nil {
			return fmt.Errorf("--use_hugepages: %w", err)
		}
		if !e.source.Huge() {
			return errNoHugePages
		}
	}
	if e.source != nil {
		e.memory = e.source.Bytes()[:n]
	} else {
		e.memory = make([]byte, n)
	}
	switch {
	case c.ODP:
		e.mr, err = e.dev.RegODP(e.pd, e.memory, access)
		if err != nil {
			err = fmt.Errorf("--odp: %w", err)
		}
	case e.source != nil:
		e.mr, e.source = e.source, nil
	default:
		e.mr, err = e.dev.RegMR(e.pd, e.memory, access)
	}
	return err
}

// deregister gives the memory back.
func (e *end) deregister() {
	for _, mr := range []*engine.MR{e.mr, e.source} {
		if mr != nil {
			// All that it could say is that it is in use, which nothing is any more.
			_ = mr.Deregister()
		}
	}
}
