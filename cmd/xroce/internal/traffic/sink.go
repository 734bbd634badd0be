package traffic

import (
	"cmp"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"xroce/roce/clock"
	"xroce/roce/gen"
)

// maxFlows bounds what strangers can make a sink remember: 38 MB.
const maxFlows = 1 << 16

// longest is the longest latency that is told from longer ones, in nanoseconds.
const longest = int64(100e9)

// A FlowKey says which flow a frame is of.
type FlowKey struct {
	MAC  [6]byte
	Run  uint8
	Flow uint16
}

// sinkFlow is what is known of a flow.
type sinkFlow struct {
	key   FlowKey
	track gen.Track
	times gen.TransitSum
	sent  uint64 // by its own word
	ended bool
	end   int64 // when it ended, by its own word

	// told is how much came when its end did. With settled that was all, or it was so before:
	// the generator does not ask again.
	told    uint64
	settled bool

	before     gen.TrackCounts // of earlier runs under the same number
	beforeSent uint64
}

// counts is what came of all runs, and how many frames they had.
func (f *sinkFlow) counts() (c gen.TrackCounts, sent uint64) {
	c = f.track.Counts(f.sent)
	sent = add(f.beforeSent, c.Received+c.Lost)
	addCounts(&c, &f.before)
	return c, sent
}

// addCounts adds to counts.
func addCounts(sum, c *gen.TrackCounts) {
	sum.Received += c.Received
	sum.Lost = add(sum.Lost, c.Lost)
	sum.Duplicates += c.Duplicates
	sum.Reordered += c.Reordered
	sum.Ancient += c.Ancient
}

// add adds numbers of frames that flows claim, which may be any: a sum that cannot be told is the
// largest number. What came is counted, and is no such number.
func add(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}

// again begins another run of a flow that ended: numbers of runs are few, so one comes again.
func (f *sinkFlow) again() {
	f.before, f.beforeSent = f.counts()
	f.track, f.times, f.sent, f.ended = gen.Track{}, gen.TransitSum{}, 0, false
}

// A Sink counts the frames that come. One caller at a time.
type Sink struct {
	reader gen.Reader
	opener *Opener // nil for frames that are in no others
	flows  map[FlowKey]*sinkFlow
	last   *sinkFlow // the flow of the frame before
	open   int       // flows that have not ended

	latency, jitter *hdrhistogram.Histogram
	totals          Totals
}

// Totals are the frames that came, by what they were.
type Totals struct {
	Signed   uint64 // with a signature, of flows
	Bytes    uint64 // of those and of segments, without FCS
	Unsigned uint64 // RoCE packets without a signature
	BadICRC  uint64
	Foreign  uint64 // none of a generator
	Marked   uint64 // with the ECN mark of congestion, of the signed ones
	Crowded  uint64 // of flows beyond those that a sink remembers
	// Backward are frames that came before they were sent, by the clocks of both ends. They
	// are not in the histogram of latency.
	Backward    uint64
	First, Last int64 // when the first and the last signed frame came
}

// NewSink makes a Sink, of frames in others if there is an opener.
func NewSink(opener *Opener) *Sink {
	return &Sink{
		opener: opener, flows: map[FlowKey]*sinkFlow{},
		latency: hdrhistogram.New(1, longest, 3), jitter: hdrhistogram.New(1, longest, 3),
	}
}

// congestion is the ECN mark CE (RFC 3168).
const congestion = 3

// Expire tells that it is so late, by a clock that does not jump: frames whose segments are missing
// for too long are given up.
func (s *Sink) Expire(now clock.Time) {
	if s.opener != nil {
		s.opener.Expire(now)
	}
}

// Segments is what came of frames in segments.
func (s *Sink) Segments() SegmentCount {
	if s.opener == nil {
		return SegmentCount{}
	}
	return s.opener.Segments()
}

// Frame takes a frame that came at a time. One that wants an answer is returned, valid until the
// next call, with what came of its flow; else nil is.
func (s *Sink) Frame(head, tail []byte, wall int64) (asks []byte, of gen.Account) {
	length := len(head) + len(tail)
	if s.opener != nil {
		inner, ok := s.opener.Open(head, tail)
		switch {
		case !ok:
			s.totals.Foreign++
			return nil, gen.Account{}
		case inner == nil:
			s.totals.Bytes += uint64(length)
			return nil, gen.Account{}
		}
		head, tail = inner, nil
	}
	a := s.reader.Read(head, tail)
	switch a.Found {
	case gen.Foreign:
		s.totals.Foreign++
		return nil, gen.Account{}
	case gen.Unsigned:
		s.totals.Unsigned++
		return nil, gen.Account{}
	case gen.BadICRC:
		s.totals.BadICRC++
		return nil, gen.Account{}
	}
	if a.Signature.Kind == gen.Report { // another sink's answer is no flow
		s.totals.Foreign++
		return nil, gen.Account{}
	}
	f := s.flow(FlowKey{a.SrcMAC, a.Signature.Run, a.Signature.Flow})
	switch {
	case f == nil:
		s.totals.Crowded++
		return nil, gen.Account{}
	case a.Signature.Kind == gen.Data:
		s.data(f, &a, length, wall)
		return nil, gen.Account{}
	}
	came := f.track.Counts(0).Received
	f.settled = came == a.Signature.Seq || f.ended && came == f.told
	if !f.ended {
		f.ended, f.end = true, a.Signature.Time
		s.open--
	}
	f.sent, f.told = a.Signature.Seq, came
	return head, gen.Account{
		Received: came, Transit: f.times.Transit(f.track.MeanJitter()),
	}
}

// flow finds a flow or begins it; nil when there are too many.
func (s *Sink) flow(key FlowKey) *sinkFlow {
	if s.last != nil && s.last.key == key {
		return s.last
	}
	f := s.flows[key]
	if f == nil {
		if len(s.flows) == maxFlows {
			return nil
		}
		f = &sinkFlow{key: key}
		s.flows[key] = f
		s.open++
	}
	s.last = f
	return f
}

// data takes a frame of a flow.
func (s *Sink) data(f *sinkFlow, a *gen.Arrival, bytes int, wall int64) {
	t := &s.totals
	if t.Signed == 0 {
		t.First = wall
	}
	t.Last = wall
	t.Signed++
	t.Bytes += uint64(bytes)
	if a.Mark == congestion {
		t.Marked++
	}
	if f.ended && a.Signature.Time > f.end { // no frame that is late
		f.again()
		s.open++
	}
	f.track.Add(a.Signature.Seq)
	transit := wall - a.Signature.Time
	f.times.Add(transit)
	if d, ok := f.track.Jitter(transit); ok {
		record(s.jitter, d)
	}
	if transit < 0 {
		t.Backward++
		return
	}
	record(s.latency, transit)
}

// record notes a time in nanoseconds; what is too long for the histogram counts as its longest.
func record(h *hdrhistogram.Histogram, ns int64) {
	// It fails for what is out of range alone.
	_ = h.RecordValue(min(max(ns, 1), longest))
}

// Over reports whether flows came and all of them have ended.
func (s *Sink) Over() bool { return len(s.flows) > 0 && s.open == 0 }

// settled reports whether no generator has a reason to ask again, if it gets its answers.
func (s *Sink) settled() bool {
	for _, f := range s.flows {
		if !f.settled {
			return false
		}
	}
	return true
}

// Totals is what came so far.
func (s *Sink) Totals() Totals { return s.totals }

// Counts sums over all flows. sent is how many frames they had, as far as that is known.
func (s *Sink) Counts() (sum gen.TrackCounts, sent uint64) {
	for _, f := range s.flows {
		c, n := f.counts()
		addCounts(&sum, &c)
		sent = add(sent, n)
	}
	return sum, sent
}

// A FlowCount is what came of one flow.
type FlowCount struct {
	FlowKey
	gen.TrackCounts
	Sent   uint64
	Ended  bool  // it said itself how much it sent
	Jitter int64 // mean, of RFC 3550, in nanoseconds
}

// Flows is what came of each flow, by their numbers.
func (s *Sink) Flows() []FlowCount {
	list := make([]FlowCount, 0, len(s.flows))
	for _, f := range s.flows {
		c, n := f.counts()
		list = append(list, FlowCount{
			f.key, c, n, f.ended, f.track.MeanJitter(),
		})
	}
	slices.SortFunc(list, func(a, b FlowCount) int {
		return cmp.Or(slices.Compare(a.MAC[:], b.MAC[:]), cmp.Compare(a.Run, b.Run),
			cmp.Compare(a.Flow, b.Flow))
	})
	return list
}

// Latency and Jitter are histograms in nanoseconds: how long frames were under way by the
// clocks of both ends, and how much that changed from one to the next.
func (s *Sink) Latency() *hdrhistogram.Histogram { return s.latency }

// Jitter is the histogram of differences; see Latency.
func (s *Sink) Jitter() *hdrhistogram.Histogram { return s.jitter }

// NumFlows is how many flows came.
func (s *Sink) NumFlows() int { return len(s.flows) }
