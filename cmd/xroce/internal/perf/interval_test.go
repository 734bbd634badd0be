package perf

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestIntervals divides a time, of which a part was spent elsewhere.
func TestIntervals(t *testing.T) {
	type part struct {
		from, to int64
		messages uint64
	}
	var got []part
	v := intervals{every: 10, tell: func(from, to int64, n uint64) {
		got = append(got, part{from, to, n})
	}}
	v.tick(90, 0) // not begun
	v.begin(100)
	v.begin(105)
	v.tick(109, 3)
	v.tick(111, 5)  // a little late
	v.tick(120, 9)  // the next one is not
	v.tick(157, 10) // held up
	v.tick(159, 10)
	v.tick(160, 12)
	v.finish(163, 13)
	v.finish(163, 13)
	want := []part{{0, 11, 5}, {11, 20, 4}, {20, 57, 1}, {57, 60, 2}, {60, 63, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// counting is a Reporter that adds up the intervals.
type counting struct {
	Record
	messages uint64
	last     time.Duration
	gaps     int
}

// Interval implements Reporter.
func (c *counting) Interval(i *Info, v *Interval) {
	if v.From != c.last {
		c.gaps++
	}
	c.last = v.To
	c.messages += v.Messages
	c.Record.Interval(i, v)
}

// TestIntervalsOfARun: the intervals of an end have each of its messages once, without a gap,
// and are told before the result. An end that only answers has none.
func TestIntervalsOfARun(t *testing.T) {
	for _, test := range []Test{{Verb: Send}, {Verb: Write}, {Verb: Read}} {
		t.Run(test.Name(), func(t *testing.T) {
			c := brief(test)
			c.Interval = MinInterval
			p := newPair(t, c)
			p.ends[1].Interval = 0
			if test.Verb == Send {
				p.ends[1].Interval = MinInterval
			}
			told := [2]counting{}
			p.ends[0].Tell, p.ends[1].Tell = &told[0], &told[1]
			if errs := p.run(t); errs[0] != nil || errs[1] != nil {
				t.Fatalf("client %v, server %v", errs[0], errs[1])
			}
			for i := range told {
				want := uint64(c.Iters)
				if p.ends[i].Interval == 0 {
					want = 0
				}
				if r := &told[i]; r.messages != want || r.gaps > 0 || len(r.Rows) != 1 {
					t.Errorf("end %d: %d messages of %d, %d gaps; %+v", i, r.messages, want,
						r.gaps, r.Record)
				}
			}
		})
	}
}

// TestIntervalReports compares what is printed of intervals, and what programs read.
func TestIntervalReports(t *testing.T) {
	c := brief(Test{Verb: Send})
	c.Interval = 2 * time.Second
	info := &Info{Config: c}
	first := c.interval(1<<20, 0, 2e9, 200)
	second := c.interval(1<<20, 2e9, 25e8, 0)
	var text strings.Builder
	record := &Record{}
	tell := Reporters{record, Text{W: &text}}
	tell.Agreed(info)
	text.Reset()
	tell.Begins(info)
	tell.Interval(info, first)
	tell.Interval(info, second)
	tell.Row(info, &Row{AfterIntervals: true})
	want := ruler + ` interval[sec]    #bytes     #messages      BW average[MB/sec]   MsgRate[Mpps]
    0.00-2.00     1048576    200            100.00               0.000100
    2.00-2.50     1048576    0              0.00                 0.000000
` + ruler + ` #bytes     #iterations`
	if got := text.String(); !strings.HasPrefix(got, want) {
		t.Errorf("printed\n%s\nnot with\n%s", got, want)
	}
	b, err := json.Marshal(record.Document(nil).Intervals)
	if err != nil {
		t.Fatal(err)
	}
	const asJSON = `[{"sum":{"start":0,"end":2,"seconds":2,"bytes":209715200,` +
		`"bits_per_second":838860800,"MsgSize":1048576,"n_messages":200,"BW_average":100.00,` +
		`"MsgRate":0.000100}},` +
		`{"sum":{"start":2,"end":2.5,"seconds":0.5,"bytes":0,"bits_per_second":0,` +
		`"MsgSize":1048576,"n_messages":0,"BW_average":0.00,"MsgRate":0.000000}}]`
	if string(b) != asJSON {
		t.Errorf("%s\nnot\n%s", b, asJSON)
	}
}

// TestManyIntervals: what is kept for --json is bounded.
func TestManyIntervals(t *testing.T) {
	r := &Record{Info: &Info{}}
	for range maxIntervals + 3 {
		r.Interval(r.Info, &Interval{})
	}
	if len(r.Intervals) != maxIntervals || r.Document(nil).IntervalsLeftOff != 3 {
		t.Errorf("%d kept, %d left off", len(r.Intervals), r.IntervalsLeftOff)
	}
}

// TestManyRows: of a run without an end the first results are kept, and the newest.
func TestManyRows(t *testing.T) {
	r := &Record{Info: &Info{}}
	for n := range maxRows + 3 {
		r.Row(r.Info, &Row{Strays: uint64(n)})
	}
	if len(r.Rows) != maxRows || r.Rows[0].Strays != 0 ||
		r.Rows[maxRows-1].Strays != maxRows+2 || r.Document(nil).ResultsLeftOff != 3 {
		t.Errorf("%d kept, %d left off", len(r.Rows), r.RowsLeftOff)
	}
}
