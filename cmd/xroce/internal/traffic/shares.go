package traffic

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"xroce/roce/gen"
	"xroce/xsk"
)

// RunShared is Run on several links at once, the first of which is that of the Sender. Flows and
// Count are dealt out to them; each has a schedule of its own, for its share of the rate. There
// are no more links than flows. Rows are those of all together.
func (s *Sender) RunShared(
	ctx context.Context, links []xsk.Link, schedules []*gen.Schedule,
) (Sent, error) {
	s.begun = s.Clock.Now()
	s.batch = make([]xsk.TxFrame, 1) // for End
	if s.Count > 0 {
		links = links[:min(uint64(len(links)), s.Count)]
	}
	s.sent = &tally{}
	group, ctx := errgroup.WithContext(ctx)
	parts := make([]*Sender, len(links))
	for i, link := range links {
		parts[i] = s.share(i, len(links), link, schedules[i])
	}
	for _, part := range parts {
		group.Go(func() error {
			_, err := part.Run(ctx)
			return err
		})
	}
	done := make(chan struct{})
	var teller sync.WaitGroup
	teller.Go(func() { s.tellUntil(done) })
	err := group.Wait()
	close(done)
	teller.Wait()
	for _, part := range parts {
		r := &part.result
		s.result.Frames += r.Frames
		s.result.Whole += r.Whole
		s.result.Bytes += r.Bytes
		s.result.Dropped += r.Dropped
		s.result.Duration = max(s.result.Duration, r.Duration)
		s.result.Late = max(s.result.Late, r.Late)
	}
	s.tellRest(s.Clock.Now() - s.begun)
	return s.result, err
}

// tellUntil tells rows while others send.
func (s *Sender) tellUntil(done <-chan struct{}) {
	if s.Interval == 0 {
		return
	}
	ticker := time.NewTicker(time.Duration(s.Interval))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.tellNow(s.Clock.Now() - s.begun)
		case <-done:
			return
		}
	}
}

// share is what one of n links sends.
func (s *Sender) share(i, n int, link xsk.Link, schedule *gen.Schedule) *Sender {
	part := &Sender{
		Link: link, Schedule: schedule, Batch: s.Batch, Clock: s.Clock, Rows: Rows{sent: s.sent},
	}
	for flow := i; flow < len(s.Flows); flow += n {
		part.Flows = append(part.Flows, s.Flows[flow])
	}
	if s.Count > 0 {
		part.Count = (s.Count + uint64(n-1-i)) / uint64(n)
	}
	return part
}
