package traffic_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
	"xroce/roce/gen"
)

// plan is one of so many flows at a rate.
func plan(rate string, d time.Duration, flow traffic.PlanFlow) traffic.Plan {
	return traffic.Plan{
		Steps: []traffic.PlanStep{{Rate: rate, Duration: d}}, Flows: []traffic.PlanFlow{flow},
	}
}

func none(int) bool { return false }

// TestSendAndCollect: what is sent by a schedule arrives, and the sink knows what was lost, also
// the last frames of all, from the end of the flows.
func TestSendAndCollect(t *testing.T) {
	l := newWireLink()
	l.lose = func(i int) bool { return i%100 == 50 || i >= 9990 && i < 10000 }
	c := &virtual{look: 100, tick: 50 * clock.Microsecond}
	s := sender(t, plan("10kpps", time.Second, traffic.PlanFlow{Flows: 4}), l, c)
	rows := 0
	s.Interval = 250 * clock.Millisecond
	s.Row = func(r traffic.Row) {
		rows++
		if rate := float64(r.Frames) / (float64(r.To-r.From) / 1e9); math.Abs(rate-10e3) > 100 {
			t.Errorf("row %d: %g pps", rows, rate)
		}
	}
	sent, err := s.Run(t.Context())
	if err != nil || sent.Frames != 10000 || sent.Bytes != 640000 || sent.Late != 0 || rows != 4 {
		t.Fatalf("%+v, %d rows, %v", sent, rows, err)
	}
	if err := s.End(none); err != nil {
		t.Fatal(err)
	}
	sink := traffic.NewSink(nil)
	col := &traffic.Collector{Link: l, Sink: sink, Clock: c}
	l.wait = func() { c.now += 50 * clock.Millisecond }
	if err := col.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts, total := sink.Counts()
	want := gen.TrackCounts{Received: 9890, Lost: 110}
	if counts != want || total != 10000 || !sink.Over() || len(sink.Flows()) != 4 {
		t.Errorf("%+v of %d, %d flows", counts, total, len(sink.Flows()))
	}
	// Each end was answered, by a frame that the link has brought back to nobody.
	if got := l.sent - 10000 - 4; got != 4 {
		t.Errorf("%d answers", got)
	}
}

// TestSendLasts: a run takes the time that it was given, however few frames are due in it, and so
// its rate is right.
func TestSendLasts(t *testing.T) {
	for _, frames := range []uint64{1, 10, 16} {
		c := &virtual{look: 100, tick: 50 * clock.Microsecond}
		p := plan(fmt.Sprintf("%dpps", frames), time.Second, traffic.PlanFlow{})
		if frames == 16 {
			p.Burst = 8
		}
		s := sender(t, p, newWireLink(), c)
		sent, err := s.Run(t.Context())
		d := sent.Duration - clock.Second
		if err != nil || sent.Frames != frames || sent.Late != 0 || d < 0 ||
			d > clock.Millisecond {
			t.Errorf("%d a second: %+v, %v", frames, sent, err)
		}
	}
}

// TestSendStopsLate: a rate that cannot be had ends soon behind its time, and says so.
func TestSendStopsLate(t *testing.T) {
	c := &virtual{look: 100 * clock.Microsecond, tick: 1000}
	l := newWireLink()
	s := sender(t, plan("10mpps", 100*time.Millisecond, traffic.PlanFlow{}), l, c)
	sent, err := s.Run(t.Context())
	if err != nil || sent.Late == 0 || sent.Duration > 120*clock.Millisecond || sent.Frames == 0 {
		t.Errorf("%+v, %v", sent, err)
	}
}

// A slowLink takes so long for each frame, and longer for its first calls, as one whose memory has
// to be made first.
type slowLink struct {
	*wireLink
	c      *virtual
	flush  clock.Time // of a call that sends nothing
	frame  clock.Time
	first  int // calls that take firstIn longer
	before int
}

const firstIn = clock.Millisecond

func (l *slowLink) Flush() error {
	l.c.now += l.flush + l.frame*clock.Time(l.sent-l.before)
	l.before = l.sent
	if l.first > 0 {
		l.first--
		l.c.now += firstIn
	}
	return nil
}

// TestSendSlowStart: what a slow start has held up is caught up with, at eight tenths of the
// largest rate, too, and is not in the mean: neither the number of frames nor the time.
func TestSendSlowStart(t *testing.T) {
	c := &virtual{look: 30, tick: 1000}
	l := &slowLink{wireLink: newWireLink(), c: c, flush: 300, frame: 450, first: 10}
	l.lose = func(int) bool { return true }
	run := func(rate string) traffic.Sent {
		s := sender(t, plan(rate, 100*time.Millisecond, traffic.PlanFlow{}), l, c)
		sent, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	most := run("max")
	largest := float64(most.Frames) / (float64(most.Duration) / 1e9)
	l.first = 10
	sent := run(fmt.Sprintf("%.0fpps", 0.8*largest))
	rate := float64(sent.Frames) / (float64(sent.Duration) / 1e9)
	if math.Abs(rate/largest-0.8) > 0.001 || sent.Late != 0 {
		t.Errorf("%.4f of the largest rate, %.0f a second: %+v", rate/largest, largest, sent)
	}
}

// TestSendCount: so many frames and no more, whatever the batch is.
func TestSendCount(t *testing.T) {
	p := plan("max", 0, traffic.PlanFlow{Size: "imix"})
	p.Count = 77
	l := newWireLink()
	sent, err := sender(t, p, l, &virtual{look: 10, tick: 10}).Run(t.Context())
	if err != nil || sent.Frames != 77 || l.sent != 77 {
		t.Errorf("%+v, %v", sent, err)
	}
}

// TestSendInterrupted: the end of the context ends it without an error.
func TestSendInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newWireLink()
	s := sender(t, plan("1kpps", 0, traffic.PlanFlow{}), l, &virtual{look: 10, tick: 1000})
	l.lose = func(i int) bool {
		if i == 99 {
			cancel()
		}
		return false
	}
	sent, err := s.Run(ctx)
	if err != nil || sent.Frames < 100 || sent.Frames > 132 {
		t.Errorf("%+v, %v", sent, err)
	}
}

// TestSinkBounded: strangers cannot make a sink remember more flows than it has room for.
func TestSinkBounded(t *testing.T) {
	p := plan("max", 0, traffic.PlanFlow{Kind: "ethernet"})
	flows, err := p.Make(route())
	if err != nil {
		t.Fatal(err)
	}
	sink := traffic.NewSink(nil)
	frame := make([]byte, 1518)
	frame = frame[:flows[0].Next(frame, 0)]
	for i := range 1<<16 + 5 {
		binary.BigEndian.PutUint32(frame[8:], uint32(i)) // of its MAC address
		sink.Frame(frame, nil, 5)
	}
	if n := sink.NumFlows(); n != 1<<16 || sink.Totals().Crowded != 5 {
		t.Errorf("%d flows, %+v", n, sink.Totals())
	}
}

// TestCollectEnds: by time, by number, and by the end of the context.
func TestCollectEnds(t *testing.T) {
	c := &virtual{look: 1000, tick: 1000}
	l := newWireLink()
	l.wait = func() { c.now += 10 * clock.Millisecond }
	col := &traffic.Collector{Link: l, Sink: traffic.NewSink(nil), Clock: c, For: clock.Second}
	if err := col.Run(t.Context()); err != nil || c.now < clock.Second || c.now > 2*clock.Second {
		t.Errorf("by time: %v at %d", err, c.now)
	}
	p := plan("max", 0, traffic.PlanFlow{})
	p.Count = 100
	if _, err := sender(t, p, l, c).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	col = &traffic.Collector{Link: l, Sink: traffic.NewSink(nil), Clock: c, Count: 64}
	if err := col.Run(t.Context()); err != nil || col.Sink.Totals().Signed != 64 {
		t.Errorf("by number: %v, %+v", err, col.Sink.Totals())
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.frames = nil
	l.wait = cancel
	col = &traffic.Collector{Link: l, Sink: traffic.NewSink(nil), Clock: c}
	if err := col.Run(ctx); err != nil {
		t.Errorf("by the context: %v", err)
	}
}

// TestPlanRefused: what is no plan, and what the error names.
func TestPlanRefused(t *testing.T) {
	for want, p := range map[string]traffic.Plan{
		"no flows":   {},
		"no kind":    plan("", 0, traffic.PlanFlow{Kind: "tcp"}),
		"sizes are":  plan("", 0, traffic.PlanFlow{Size: "x"}),
		"no payload": plan("", 0, traffic.PlanFlow{Payload: "x"}),
		"no field":   plan("", 0, traffic.PlanFlow{Vary: []string{"x=1"}}),
		"no fault":   plan("", 0, traffic.PlanFlow{Faults: []string{"x=1"}}),
		"VLAN 4095":  plan("", 0, traffic.PlanFlow{VLAN: 4095}),
		"no opcode": plan("", 0, traffic.PlanFlow{
			RoCE: traffic.PlanRoCE{Opcodes: []string{"x"}},
		}),
		"path MTU 1000":   plan("", 0, traffic.PlanFlow{RoCE: traffic.PlanRoCE{MTU: 1000}}),
		"65536 flows":     plan("", 0, traffic.PlanFlow{Flows: 1<<16 + 1}),
		"their signature": plan("", 0, traffic.PlanFlow{Size: "60"}),
	} {
		if _, err := p.Make(route()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for want, p := range map[string]traffic.Plan{
		"no rate":      plan("x", 0, traffic.PlanFlow{}),
		"--line-rate":  plan("50%", 0, traffic.PlanFlow{}),
		"no duration":  plan("1..2", 0, traffic.PlanFlow{}),
		"1kpps..max":   plan("1kpps..max", time.Second, traffic.PlanFlow{}),
		"max..1kpps":   plan("max..1kpps", time.Second, traffic.PlanFlow{}),
		"a step of":    plan("1", -1, traffic.PlanFlow{}),
		"bits a secon": {LineRate: "1mpps"},
	} {
		if _, err := p.Schedule(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := (&traffic.Plan{}).Make(route()); !errors.Is(err, traffic.ErrPlan) {
		t.Errorf("an empty plan: %v", err)
	}
}

// TestNoAllocations: neither a batch that is sent nor a frame that comes allocates.
func TestNoAllocations(t *testing.T) {
	l := newWireLink()
	flows := sender(t, plan("max", 0, traffic.PlanFlow{Flows: 3}), l, &virtual{}).Flows
	sink := traffic.NewSink(nil)
	frame := make([]byte, 1518)
	send := func() {
		for _, f := range flows {
			sink.Frame(frame[:f.Next(frame, 1)], nil, 5)
		}
	}
	send()
	if n := testing.AllocsPerRun(100, send); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestScenarioRefused: words that nobody knows, and values that are none, are refused with their
// line.
func TestScenarioRefused(t *testing.T) {
	bomb := "flows:\n- &a0 {}\n" // each flow has the one before it nine times
	for i := range 20 {
		before := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", ")
		bomb += fmt.Sprintf("- &a%d {<<: [%s]}\n", i+1, before)
	}
	for text, want := range map[string]string{
		"flows:\n  - {kind: udp}\nspeed: 3\n":  `line 3: there is no word "speed" here`,
		"flows:\n  - {knd: udp}\n":             `line 2: there is no word "knd" here`,
		"flows:\n  - {port: 70000}\n":          "line 2",
		"steps: [{duration: fast}]":            "line 1",
		"count: 5\n":                           "no flows",
		"":                                     "the file is empty",
		"# nothing\n":                          "the file is empty",
		"flows: " + strings.Repeat("[", 1<<17): "max depth",
		bomb:                                   "excessive aliasing",
		"flows: [{kind: udp}]\n---\nx: 1\n":    "behind the first",
		"flows: &a [*a]":                       "bad plan",
	} {
		if p, err := traffic.ParseScenario([]byte(text)); !errors.Is(err, traffic.ErrPlan) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
}

// TestSinkRunsAgain: a number of a run comes again after 256 of them. What ended is kept, a
// frame of it that is late is still its own, and what begins anew is no repetition.
func TestSinkRunsAgain(t *testing.T) {
	sink := traffic.NewSink(nil)
	frame := make([]byte, 1518)
	for run := range int64(2) {
		f := sender(t, plan("max", 0, traffic.PlanFlow{}), newWireLink(), &virtual{}).Flows[0]
		var late []byte
		for i := range int64(5000) {
			n := f.Next(frame, 1+run*10000+i)
			if i == 4998 {
				late = append(late, frame[:n]...)
				continue
			}
			sink.Frame(frame[:n], nil, 30000)
		}
		asks, of := sink.Frame(frame[:f.End(frame, run*10000+6000)], nil, 30000)
		// Those of the other run are not among them.
		newest, oldest := uint32(30000-(1+run*10000+4999)), uint32(30000-(1+run*10000))
		if of.Received != 4999 || asks == nil || !sink.Over() || of.Min != newest ||
			of.Max != oldest || of.Mean < newest || of.Mean > oldest || of.Jitter > 2 {
			t.Errorf("run %d: %+v came, over %t", run, of, sink.Over())
		}
		sink.Frame(late, nil, 30000)
	}
	counts, sent := sink.Counts()
	want := gen.TrackCounts{Received: 10000, Reordered: 2}
	if counts != want || sent != 10000 || sink.NumFlows() != 1 || !sink.Over() {
		t.Errorf("%+v of %d", counts, sent)
	}
}
