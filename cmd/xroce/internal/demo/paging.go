package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/pager"
	"xroce/roce"
)

// pagedBytes is how much memory is paged.
const pagedBytes = 256 << 10

// playPaging has host 0 write to and read memory of host 1 whose pages come and go.
func playPaging(ctx context.Context, c *cast) (err error) {
	p, talk, err := c.join(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return err
	}
	defer p.disconnect()
	s, err := newPagedScene(p, c.tally, talk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.write(ctx, "WRITE to memory that nobody touched"); err != nil {
		return err
	}
	pages := uint64(pagedBytes / os.Getpagesize())
	if err := s.writeToNothing(ctx, pages); err != nil {
		return err
	}
	err = s.mr[1].Advise(0, pagedBytes, engine.AdvicePrefetch, engine.AdviseFlush)
	if err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	stats := s.stats()
	// Unmapped it would be anybody's, this process's own run time's before all.
	if err := unix.Mprotect(s.memory, unix.PROT_NONE); err != nil {
		return err
	}
	if err := s.forget(); err != nil {
		return err
	}
	if err := s.refused(ctx); err != nil {
		return err
	}
	c.check(stats.PageFaults >= pages, "paging: %d page faults for %d pages", stats.PageFaults,
		pages)
	c.check(stats.PageInvalidations >= pages, "paging: %d pages taken away of %d",
		stats.PageInvalidations, pages)
	c.check(stats.PagePrefetch == pages, "paging: %d pages prefetched of %d",
		stats.PagePrefetch, pages)
	c.notes = append(c.notes,
		fmt.Sprintf("page_faults %d, page_faults_handled %d, page_prefetch %d",
			stats.PageFaults, stats.PageFaultsHandled, stats.PagePrefetch),
		fmt.Sprintf("page_invalidations %d, page_invalidations_handled %d",
			stats.PageInvalidations, stats.PageInvalidationsHandled), faultTimes(p.dev[1]))
	return nil
}

// faultTimes tells how long the faults of a device took.
func faultTimes(d *engine.Device) string {
	_, latency := d.ODPStats()
	text := "faults took"
	for i, n := range latency {
		if n > 0 {
			text += fmt.Sprintf(" < %s: %d", pager.LatencyBound(i), n)
		}
	}
	return text
}

// A pagedScene is memory of host 0, and paged memory of host 1.
type pagedScene struct {
	*pair
	tally
	talk   *talk
	mr     [2]*engine.MR
	memory []byte // of host 1
	round  byte

	meanwhile func(try int) // of tests: is called when pages were taken away
}

func newPagedScene(p *pair, t tally, talk *talk) (*pagedScene, error) {
	s := &pagedScene{pair: p, tally: t, talk: talk}
	var err error
	s.memory, err = unix.Mmap(-1, 0, pagedBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	if s.mr[0], err = p.dev[0].RegMR(p.pd[0], make([]byte, pagedBytes), allRights); err == nil {
		s.mr[1], err = p.dev[1].RegODP(p.pd[1], s.memory, allRights)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(s.memory))
	}
	return s, nil
}

func (s *pagedScene) close() error {
	return errors.Join(s.mr[0].Deregister(), s.mr[1].Deregister(), unix.Munmap(s.memory))
}

// stats are those of the paged region.
func (s *pagedScene) stats() pager.Stats {
	stats, _ := s.mr[1].ODPStats()
	return stats
}

// writeToNothing takes the pages away and writes to them, until the device has met so many that
// were gone. A worker that is late brings back what an earlier WRITE had it asked for.
func (s *pagedScene) writeToNothing(ctx context.Context, pages uint64) error {
	const tries = 10
	for try := 0; try < tries && s.stats().PageInvalidations < pages; try++ {
		if err := s.takeAway(); err != nil {
			return err
		}
		if s.meanwhile != nil {
			s.meanwhile(try)
		}
		if err := s.write(ctx, "WRITE to memory that was taken away"); err != nil {
			return err
		}
	}
	return nil
}

// takeAway frees the pages.
func (s *pagedScene) takeAway() error {
	if err := unix.Madvise(s.memory, unix.MADV_DONTNEED); err != nil {
		return err
	}
	return s.forget()
}

// forget lets the time pass for which a look at pages holds.
func (s *pagedScene) forget() error {
	time.Sleep(time.Millisecond)
	return s.fence()
}

// request is one for n bytes of the memory.
func (s *pagedScene) request(op roce.Opcode, n int) *roce.SendWR {
	return &roce.SendWR{
		Opcode: op, SGList: []roce.SGE{s.mr[0].SGE(0, n)},
		RemoteAddr: s.mr[1].Addr(), RKey: s.mr[1].RKey(),
	}
}

// write writes all of the memory.
func (s *pagedScene) write(ctx context.Context, what string) error {
	s.round++
	for i := range s.mr[0].Bytes() {
		s.mr[0].Bytes()[i] = byte(i) * s.round
	}
	mark(s.mr[0].Bytes())
	if err := s.end[0].QP.PostSend(s.request(roce.OpWrite, pagedBytes)); err != nil {
		return err
	}
	s.talk.carried(0, roce.OpWrite, pagedBytes)
	want := &roce.Completion{Opcode: roce.WCWrite, QPN: s.end[0].QP.QPN()}
	if err := s.expect(ctx, s.tally, what, [2]*roce.Completion{want, nil}); err != nil {
		return err
	}
	s.check(bytes.Equal(s.mr[0].Bytes(), s.memory), "%s: the data differs", what)
	return s.fence()
}

// refused writes to memory that may not be accessed any more.
func (s *pagedScene) refused(ctx context.Context) error {
	const n = 64
	if err := s.end[0].QP.PostSend(s.request(roce.OpWrite, n)); err != nil {
		return err
	}
	s.talk.carried(0, roce.OpWrite, n)
	s.talk.refused()
	want := &roce.Completion{Status: roce.StatusRemAccessErr, QPN: s.end[0].QP.QPN()}
	return s.expect(ctx, s.tally, "WRITE to memory that nobody may touch",
		[2]*roce.Completion{want, nil})
}

// read reads it back.
func (s *pagedScene) read(ctx context.Context) error {
	const what = "READ of memory that was prefetched"
	clear(s.mr[0].Bytes())
	if err := s.end[0].QP.PostSend(s.request(roce.OpRead, pagedBytes)); err != nil {
		return err
	}
	s.talk.carried(0, roce.OpRead, pagedBytes)
	want := &roce.Completion{Opcode: roce.WCRead, QPN: s.end[0].QP.QPN(), ByteLen: pagedBytes}
	if err := s.expect(ctx, s.tally, what, [2]*roce.Completion{want, nil}); err != nil {
		return err
	}
	s.check(bytes.Equal(s.mr[0].Bytes(), s.memory), "%s: the data differs", what)
	return s.fence()
}
