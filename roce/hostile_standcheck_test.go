package roce_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"xroce/roce"
)

// check holds the stand against what no packet, post, timer or modify may ever
// break.
func (s *stand) check() {
	s.poll()
	if err := s.broken(); err != nil {
		s.tb.Helper()
		s.tb.Fatalf("%s from %s: %v; %+v", s.kind.name, s.start, err, s.qp.Snapshot())
	}
}

// broken says which invariant does not hold.
func (s *stand) broken() error {
	for i := range areaCount + 1 {
		off := i * (standArea + standGuard)
		if i := changed(s.bytes[off:][:standGuard]); i >= 0 {
			return fmt.Errorf("byte %d of the memory, in no region, was changed", off+i)
		}
	}
	for _, area := range []int{areaReadOnly, areaForeign} {
		if i := changed(s.area(area)); i >= 0 {
			return fmt.Errorf("byte %d of area %d was changed", i, area)
		}
	}
	v := s.qp.Snapshot()
	// A READ of 2^31 bytes takes half of the PSNs, behind a window of others.
	const most = 1<<23 + 1<<10
	next, top := v.NextPSN.Sub(uint32(v.UnackedPSN)), v.TopPSN.Sub(uint32(v.UnackedPSN))
	switch {
	case next > top || top > most:
		return fmt.Errorf("requester: %d to send, %d sent", next, top)
	case v.SendPosted > standDepth || v.SendBegun > v.SendPosted:
		return fmt.Errorf("%d requests posted, %d begun", v.SendPosted, v.SendBegun)
	case v.RecvPosted > standDepth:
		return fmt.Errorf("%d receives posted", v.RecvPosted)
	case v.Outstanding > v.SendPosted:
		return fmt.Errorf("%d reads of %d requests outstanding", v.Outstanding, v.SendPosted)
	case v.Responses > 2*roce.MaxRdAtomic+1:
		return fmt.Errorf("%d answers wait", v.Responses)
	case v.EarlyRequests+v.EarlyResponses+s.pool.Free() != standPool:
		return fmt.Errorf("%d and %d packets kept, %d of %d free", v.EarlyRequests,
			v.EarlyResponses, s.pool.Free(), standPool)
	case v.MSN >= 1<<24 || v.SSN >= 1<<24 || v.LSN >= 1<<24:
		return fmt.Errorf("MSN %d, SSN %d, LSN %d", v.MSN, v.SSN, v.LSN)
	case s.sendDone > s.sendPosted || s.recvDone > s.recvPosted:
		return fmt.Errorf("%d of %d sends, %d of %d receives completed", s.sendDone,
			s.sendPosted, s.recvDone, s.recvPosted)
	case uint64(v.SendPosted) != s.sendPosted-s.sendDone:
		return fmt.Errorf("%d sends posted, %d completed, %d left", s.sendPosted, s.sendDone,
			v.SendPosted)
	}
	return nil
}

// untouched is memory in which nothing was changed, as long as any that is looked at.
var untouched = bytes.Repeat([]byte{canary}, max(standArea, standGuard))

// changed is the index of the first byte that is no canary, -1 for none. It is asked after
// each of hundreds of thousands of packets.
func changed(b []byte) int {
	if bytes.Equal(b, untouched[:len(b)]) {
		return -1
	}
	return slices.IndexFunc(b, func(v byte) bool { return v != canary })
}

// end goes to ERR, where all work must complete, and to RESET, where nothing is
// left.
func (s *stand) end() {
	s.tb.Helper()
	for _, state := range []roce.State{roce.StateErr, roce.StateReset} {
		must(s.tb, s.modify(&roce.Attr{State: state}, roce.AttrState))
		s.sendAll()
		s.check()
	}
	left := 0
	if s.srq != nil {
		_, left = s.srq.Query()
	}
	if s.sendDone != s.sendPosted || s.recvPosted-s.recvDone != uint64(left) {
		s.tb.Fatalf("%s from %s: %d of %d sends, %d of %d receives completed", s.kind.name,
			s.start, s.sendDone, s.sendPosted, s.recvDone, s.recvPosted)
	}
	if at, ok := s.qp.NextDeadline(); ok {
		s.tb.Fatalf("%s from %s: a timer at %d in RESET", s.kind.name, s.start, at)
	}
}

// runOut lets all timers expire: with a silent peer every request must end.
func (s *stand) runOut() {
	s.tb.Helper()
	for range 20_000 {
		s.sendAll()
		s.check()
		if !s.tick() {
			return
		}
	}
	s.tb.Fatalf("%s from %s: timers do not end: %+v", s.kind.name, s.start, s.qp.Snapshot())
}

// TestStand: a QP of every kind, in every state, ends as it should when nobody
// attacks it.
func TestStand(t *testing.T) {
	eachKind(func(k kind, state roce.State) {
		s := newStand(t, k, state)
		s.runOut()
		s.end()
	})
}

// frozen wants a step to change nothing but counters: no state, no memory, no
// completion, nothing to send.
func (s *stand) frozen(what string, step func()) {
	s.tb.Helper()
	s.check()
	before, memory := s.qp.Snapshot(), bytes.Clone(s.bytes)
	sends, receives, events := s.sendDone, s.recvDone, len(s.events)
	step()
	s.sendAll()
	s.check()
	after := s.qp.Snapshot()
	after.LastDrop = before.LastDrop
	switch {
	case before != after:
		s.tb.Fatalf("%s in %s: %s changed %+v to %+v", s.kind.name, s.start, what, before, after)
	case !bytes.Equal(memory, s.bytes):
		s.tb.Fatalf("%s in %s: %s changed memory", s.kind.name, s.start, what)
	case sends != s.sendDone || receives != s.recvDone || events != len(s.events):
		s.tb.Fatalf("%s in %s: %s completed something", s.kind.name, s.start, what)
	}
}
