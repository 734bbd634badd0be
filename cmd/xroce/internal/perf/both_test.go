package perf

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// TestReportBoth: what each end has sent is told with --report-both as text and as JSON, by
// messages and by time, and is what both come to together.
func TestReportBoth(t *testing.T) {
	for _, tt := range []struct {
		name string
		test Test
		d    time.Duration
	}{
		{"send-bw", Test{Verb: Send}, 0},
		{"send-bw -D", Test{Verb: Send}, 300 * time.Millisecond},
		{"write-bw", Test{Verb: Write}, 0},
		{"write-bw -D", Test{Verb: Write}, 300 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := brief(tt.test)
			c.Both, c.Separate, c.Duration = true, true, tt.d
			p := newPair(t, c)
			var texts [2]strings.Builder
			for i := range p.ends {
				p.ends[i].Tell = Reporters{&p.records[i], Text{W: &texts[i]}}
			}
			if errs := p.run(t); errs[0] != nil || errs[1] != nil {
				t.Fatalf("client %v, server %v", errs[0], errs[1])
			}
			for i := range p.records {
				checkBoth(t, &p.records[i], tt.test.Verb == Send && tt.d > 0)
				for _, want := range []string{"\n Local results: \n", "\n Remote results: \n"} {
					if !strings.Contains(texts[i].String(), want) {
						t.Errorf("end %d: no %q in %s", i, want, texts[i].String())
					}
				}
			}
		})
	}
}

// checkBoth compares the parts of a result with the whole, for which messages of both ends may have
// been counted here.
func checkBoth(t *testing.T, r *Record, counted bool) {
	t.Helper()
	row := &r.Rows[0]
	local, remote := row.Local, row.Remote
	if len(r.Rows) != 1 || local == nil || remote == nil {
		t.Fatalf("%+v", r.Rows)
	}
	if counted && local.Iters+remote.Iters != row.Iters ||
		math.Abs(local.Average+remote.Average-row.Average) > 1e-6*row.Average {
		t.Errorf("%+v and %+v are not %+v", local.Report, remote.Report, row.Report)
	}
	for _, v := range []any{r.Document(nil).Results[0], r.File().Results} {
		b, err := json.Marshal(v)
		must(t, err)
		var got struct {
			Local, Remote *struct {
				Iters   uint64  `json:"n_iterations"`
				Average float64 `json:"BW_average"`
			}
		}
		must(t, json.Unmarshal(b, &got))
		if got.Local == nil || got.Remote == nil || got.Local.Iters != local.Iters ||
			math.Abs(got.Remote.Average-remote.Average) > 0.01 {
			t.Errorf("%s", b)
		}
	}
}

// TestBothBegin: the time of an end that sends and receives begins with its first post, and that of
// one that waits for the other one with what comes first.
func TestBothBegin(t *testing.T) {
	const ago = time.Hour
	for _, dial := range []bool{true, false} {
		c := brief(Test{Verb: Send})
		c.Both, c.Dial = true, dial
		s := newStream(&end{cfg: &c, flows: make([]flow, 1)}, c.Size, func(uint64) {})
		s.clock = newClock()
		s.flows[0].supplied = s.limit // none is posted any more
		s.clock.zero = s.clock.zero.Add(-ago)
		if err := s.received(&s.flows[0], 0); err != nil {
			t.Fatal(err)
		}
		if begun := time.Duration(s.first); dial && begun != 0 || !dial && begun < ago {
			t.Errorf("dials %t: its time begins at %s", dial, begun)
		}
		if s.held {
			t.Errorf("dials %t: it waits", dial)
		}
	}
}
