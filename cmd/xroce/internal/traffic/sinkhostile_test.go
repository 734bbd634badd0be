package traffic_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
	"xroce/roce/gen"
)

// TestSinkOfAnyNumbers: a flow may claim to have sent any number of frames, in any number of
// runs. What was lost then is never more than what was sent, and what came stays what came.
func TestSinkOfAnyNumbers(t *testing.T) {
	sink := traffic.NewSink(nil)
	p := plan("max", 0, traffic.PlanFlow{})
	p.Count = 1
	flows, err := p.Make(route())
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 1518)
	frame = frame[:flows[0].Next(frame, 0)]
	signature := frame[14+20+8:][:gen.SignatureLen]
	const runs = 1<<16 + 5
	for run := range int64(runs) {
		for i, kind := range []gen.SignatureKind{gen.Data, gen.End} {
			s := gen.Signature{Kind: kind, Seq: 1<<48 - 1, Time: 2*run + int64(i)}
			s.Put(signature)
			sink.Frame(frame, nil, 2*runs)
		}
	}
	counts, sent := sink.Counts()
	if counts.Received != runs || counts.Lost > sent || sent < 1<<63 {
		t.Errorf("%+v of %d", counts, sent)
	}
}

// A downLink is one whose interface is down for a while.
type downLink struct {
	*wireLink
	down int // calls
}

func (l *downLink) Flush() error {
	if l.down > 0 {
		l.down--
		return unix.ENETDOWN
	}
	return l.wireLink.Flush()
}

// TestCollectOutage: an interface that is down when an answer should leave is no end of all that
// was counted.
func TestCollectOutage(t *testing.T) {
	c := &virtual{look: 1000, tick: 1000}
	l := &downLink{wireLink: newWireLink(), down: 3}
	l.wait = func() { c.now += 10 * clock.Millisecond }
	p := plan("max", 0, traffic.PlanFlow{})
	p.Count = 10
	s := sender(t, p, l.wireLink, c)
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.End(func(int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	sink := traffic.NewSink(nil)
	col := &traffic.Collector{Link: l, Sink: sink, Clock: c}
	if err := col.Run(t.Context()); err != nil || sink.Totals().Signed != 10 {
		t.Errorf("%v, %+v", err, sink.Totals())
	}
}
