package traffic

import (
	"sync"

	"xroce/engine"
	"xroce/xsk"
)

// A Meter shows what goes over links of an interface, and what a Sink makes of it, while others
// use them. It implements metrics.Source. Who uses a link takes an uncontended lock for each
// call, that is for each batch of frames.
type Meter struct {
	name  string
	links []*meteredLink

	mu   sync.Mutex // guards sink while it is used
	sink *Sink
}

// NewMeter returns a Meter of no link, of what has this name.
func NewMeter(name string) *Meter { return &Meter{name: name} }

// Link returns the link whose frames are shown. It is used in place of the other, as that is: by
// one goroutine at a time. All links are there before anybody reads.
func (m *Meter) Link(link xsk.Link) xsk.Link {
	l := &meteredLink{Link: link}
	m.links = append(m.links, l)
	return l
}

// Watch shows what a Sink counts, too, and returns the lock to hold while that is changed. A nil
// Meter shows nothing and has none.
func (m *Meter) Watch(s *Sink) sync.Locker {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sink = s
	return &m.mu
}

// Name implements metrics.Source.
func (m *Meter) Name() string { return m.name }

// Counters are those of all links together, and of the Sink. It is safe for concurrent use.
func (m *Meter) Counters() ([]engine.Counter, error) {
	var sum []engine.Counter
	for _, l := range m.links {
		st, err := l.Stats()
		if err != nil {
			return nil, err
		}
		list := engine.LinkCounters(&st)
		for i := range sum {
			list[i].Value += sum[i].Value
		}
		sum = list
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sink != nil {
		sum = append(sum, m.sink.counters()...)
	}
	return sum, nil
}

// counters are what came, under names for programs.
func (s *Sink) counters() []engine.Counter {
	c, _ := s.Counts()
	return []engine.Counter{
		{Name: "sink_frames", Value: c.Received, Unit: "frames", Help: "different ones of flows"},
		{Name: "sink_lost_frames", Value: c.Lost, Unit: "frames", Help: "missing now"},
		{Name: "sink_duplicate_frames", Value: c.Duplicates, Unit: "frames", Help: "came again"},
		{
			Name: "sink_reordered_frames", Value: c.Reordered, Unit: "frames",
			Help: "came behind one with a larger number",
		},
		{
			Name: "sink_bad_icrc_frames", Value: s.totals.BadICRC, Unit: "frames",
			Help: "with a wrong ICRC, of no flow",
		},
		{
			Name: "sink_marked_frames", Value: s.totals.Marked, Unit: "frames",
			Help: "with the ECN mark of congestion",
		},
		{Name: "sink_flows", Value: uint64(len(s.flows)), Unit: "flows", Help: "that came"},
	}
}

// A meteredLink is a link whose counters others read. Wait is not locked: it changes none.
type meteredLink struct {
	xsk.Link
	mu sync.Mutex
}

// Receive implements xsk.Link.
func (l *meteredLink) Receive(frames []xsk.RxFrame) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Link.Receive(frames)
}

// Release implements xsk.Link.
func (l *meteredLink) Release(frames []xsk.RxFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Link.Release(frames)
}

// Reserve implements xsk.Link.
func (l *meteredLink) Reserve(frames []xsk.TxFrame) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Link.Reserve(frames)
}

// Transmit implements xsk.Link.
func (l *meteredLink) Transmit(frames []xsk.TxFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Link.Transmit(frames)
}

// Return implements xsk.Link.
func (l *meteredLink) Return(frames []xsk.TxFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Link.Return(frames)
}

// Flush implements xsk.Link.
func (l *meteredLink) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Link.Flush()
}

// Pending implements xsk.Link.
func (l *meteredLink) Pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Link.Pending()
}

// Stats implements xsk.Link. It is safe for concurrent use.
func (l *meteredLink) Stats() (xsk.Stats, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Link.Stats()
}

// Close implements xsk.Link.
func (l *meteredLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Link.Close()
}
