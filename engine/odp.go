package engine

import (
	"fmt"

	"xroce/engine/pager"
	"xroce/roce"
	"xroce/roce/mem"
)

// keyIndex is the part of a memory key that stays the same for its life.
func keyIndex(key uint32) uint32 { return key >> 8 }

// ODPMemory is memory to be registered for on-demand paging: Length bytes from Start on
// of the process's addresses. The range of 0 and math.MaxUint64 is implicit: every
// address that the process has or will have.
type ODPMemory struct {
	Start, Length uint64
	// Addr is the address by which requests name the first byte, 0 for Start. It must
	// be 0 for implicit memory, whose addresses are the process's own.
	Addr uint64
	// Allow are the only ranges that keys of the memory reach: nil for all, and an empty
	// list for none. An implicit key without it gives the peer all that the process has.
	Allow []pager.Range
}

// implicit reports whether the memory is the whole address space.
func (m *ODPMemory) implicit() bool {
	return pager.Range{Addr: m.Start, Length: m.Length} == pager.Implicit
}

// RegODP registers buf for on-demand paging: like RegMR, but not a page of it is touched,
// and pages may come and go at any time. Memory that was mapped is what it is for, most of
// all files; with Go's own memory there is nothing to gain.
//
// What happens to a peer while pages are brought in is in package roce: it is told to try
// again (RNR NAK), so it should have an RNR_RETRY of 7. What has no memory, as behind the
// end of a file, is refused as any other range that may not be accessed.
//
// Deregister what is unmapped for good: the kernel gives its addresses to whoever maps
// memory next, be it the Go run time, and the key reaches what is there.
func (d *Device) RegODP(pd *PD, buf []byte, access mem.Access) (*MR, error) {
	addr := pager.AddressOf(buf)
	return d.regODP(pd, ODPMemory{Start: addr, Length: uint64(len(buf))}, access, buf)
}

// RegODPMemory registers addresses for on-demand paging (ibv_reg_mr and ibv_reg_mr_iova
// with IBV_ACCESS_ON_DEMAND). Nothing needs to be mapped there yet, nor to stay. With
// HUGETLB all of the range must be mapped, of huge pages; implicit memory cannot have it.
// The error is roce.ErrInvalid, or those of mem.Keys.RegisterMemory and
// pager.Pager.NewRegion.
func (d *Device) RegODPMemory(pd *PD, m ODPMemory, access mem.Access) (*MR, error) {
	return d.regODP(pd, m, access, nil)
}

func (d *Device) regODP(pd *PD, m ODPMemory, access mem.Access, keep []byte) (*MR, error) {
	if err := pd.retain(d); err != nil {
		return nil, err
	}
	mr, err := d.newODP(pd, m, access, keep)
	if err != nil {
		pd.release()
		return nil, err
	}
	mr.pdn.Store(pd.number)
	d.registry.add(resourceMR, mr, &mr.number)
	p := &d.paging
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.regions == nil {
		p.regions = map[uint32]*MR{}
	}
	p.regions[keyIndex(mr.LKey())] = mr
	return mr, nil
}

// newODP makes the region of an MR.
func (d *Device) newODP(pd *PD, m ODPMemory, access mem.Access, keep []byte) (*MR, error) {
	switch {
	case m.implicit() && m.Addr != 0:
		return nil, fmt.Errorf("%w: implicit memory at address %#x, which must be 0",
			roce.ErrInvalid, m.Addr)
	case m.implicit() && access&mem.HugeTLB != 0:
		return nil, fmt.Errorf("%w: implicit memory is not of huge pages alone", roce.ErrInvalid)
	case m.Addr == 0 && access&mem.ZeroBased == 0:
		m.Addr = m.Start
	}
	r, err := d.paging.pager.NewRegion(pager.RegionOptions{
		Range: pager.Range{Addr: m.Start, Length: m.Length},
		Allow: m.Allow, Keep: keep, Huge: access&mem.HugeTLB != 0,
	})
	if err != nil {
		return nil, err
	}
	region, err := d.keys.RegisterMemory(&pd.core, mem.Memory{
		Pager: r, Start: m.Start, Length: m.Length, Addr: m.Addr,
	}, access|mem.OnDemand)
	if err != nil {
		r.Close()
		return nil, err
	}
	d.paging.used.Store(true)
	if m.implicit() && m.Allow == nil {
		d.options.Logger.Warn("a key names the whole address space of the process: whoever "+
			"has it can reach all memory; ODPMemory.Allow limits it",
			"device", d.Name(), "rkey", fmt.Sprintf("0x%08x", region.RKey()),
			"access", region.Access().String())
	}
	return &MR{core: region, device: d, pd: pd, odp: r}, nil
}

// forgetODP ends the paging of a region whose key is gone or stands for other memory, when
// the faults that are being handled have been. Twice is as good as once.
func (d *Device) forgetODP(m *MR) {
	d.paging.mu.Lock()
	delete(d.paging.regions, keyIndex(m.LKey()))
	d.paging.mu.Unlock()
	m.odp.Close()
}

// ODPStats returns what was counted for the region, false for one without on-demand
// paging.
func (m *MR) ODPStats() (pager.Stats, bool) {
	if m.odp == nil {
		return pager.Stats{}, false
	}
	return m.odp.Stats(), true
}

// ODPStats returns what was counted for all regions of the device that there ever were,
// and how long faults took.
func (d *Device) ODPStats() (pager.Stats, pager.Latency) {
	return d.paging.pager.Stats(), d.paging.pager.Latency()
}

// counters are the totals under the kernel's names.
func (p *paging) counters() []Counter {
	s := p.pager.Stats()
	return []Counter{
		{"page_faults", s.PageFaults, "pages", "absent when accessed, and brought in"},
		{"page_faults_handled", s.PageFaultsHandled, "events", "that brought pages in"},
		{"page_invalidations", s.PageInvalidations, "pages", "present once and gone later"},
		{
			"page_invalidations_handled", s.PageInvalidationsHandled, "events",
			"accesses that met such pages",
		},
		{"page_prefetch", s.PagePrefetch, "pages", "brought in on advice"},
		{
			"page_fault_wait_ns", uint64(s.PageFaultWait), "nanoseconds",
			"from accesses that found pages absent to their being there",
		},
		{
			"page_gone", p.pager.Gone(), "events",
			"accesses stopped because memory was taken away under them",
		},
		{"page_queue_full", p.pager.QueueFull(), "events", "requests for pages that had to wait"},
	}
}
