package demo

import (
	"errors"
	"os"
	"testing"

	"xroce/engine/pager"
	"xroce/roce"
)

// TestPagesComeBack: pages that a late worker brings back after they were taken away are taken away
// again.
func TestPagesComeBack(t *testing.T) {
	if err := pager.Supported(); err != nil {
		t.Skip("SKIPPED:", err)
	}
	o := Options{Simulated: true}
	o.setDefaults()
	w, err := makeWire(&o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	h, err := w.openBoth(o.Device, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}()
	c := &cast{hosts: h, tally: tally{&Report{}}}
	p, talk, err := c.join(t.Context(), allRights, both(roce.TypeRC))
	if err != nil {
		t.Fatal(err)
	}
	defer p.disconnect()
	s, err := newPagedScene(p, c.tally, talk)
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	s.meanwhile = func(try int) {
		if tries++; try > 0 {
			return
		}
		for at := 0; at < len(s.memory); at += os.Getpagesize() {
			s.memory[at] = 1
		}
	}
	pages := uint64(pagedBytes / os.Getpagesize())
	err = errors.Join(s.write(t.Context(), "WRITE"), s.writeToNothing(t.Context(), pages))
	if n := s.stats().PageInvalidations; err != nil || n < pages || tries < 2 || tries == 10 {
		t.Errorf("%d pages of %d met that were taken away, %d times: %v", n, pages, tries, err)
	}
	if err := s.close(); err != nil || c.report.Failed > 0 {
		t.Errorf("%v, %q", err, c.report.Failures)
	}
}
