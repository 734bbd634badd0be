package perf

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// losing makes a pair that sends datagrams, of which n are lost on the way from the nth on. None
// is lost for want of a receive: there are as many as messages.
func losing(t *testing.T, nth, n int) *pair {
	t.Helper()
	c := brief(Test{Verb: Send})
	c.Type, c.Size, c.Iters, c.RxDepth = roce.TypeUD, 1024, 40, 40
	p := newPair(t, c)
	err := p.network.SetRules(sim.Rule{
		From: [6]byte{2, 0, 0, 0, 0, 1}, Opcodes: []wire.Opcode{wire.UDSendOnly},
		Nth: nth, Times: n,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.ends {
		p.ends[i].hurry = patience{through: timeout.Scaled(time.Second)}
	}
	return p
}

// TestLossOfOneSize: with -a messages that are lost are missing from the result of their size, and
// from no other: the receives that they left are good for longer ones, and do not add up.
func TestLossOfOneSize(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, lost := range []int{1, 30} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			p := losing(t, 5, lost)
			for i := range p.ends {
				p.ends[i].All = true
			}
			if errs := p.run(t); errs[0] != nil || errs[1] != nil {
				t.Fatalf("client %v, server %v", errs[0], errs[1])
			}
			for n, r := range p.records[1].Rows {
				want := uint64(0)
				if n == 0 {
					want = uint64(lost)
				}
				if r.Lost != want || r.Iters != 40-want || r.Size != 2<<n {
					t.Errorf("row %d: %+v", n, r)
				}
			}
			if n := len(p.records[1].Rows); n != 11 && n != 12 { // to the path MTU
				t.Errorf("%d sizes", n)
			}
		})
	}
}

// TestRateWithLoss: the time in which the rest is waited for in vain is no part of what was
// measured.
func TestRateWithLoss(t *testing.T) {
	t.Parallel()
	// A server that was not scheduled for long has an honest result that looks like it: then the
	// wait is made longer.
	for wait := timeout.Scaled(time.Second); ; wait *= 2 {
		p := losing(t, 40, 1)
		p.ends[1].hurry.through = min(wait, throughTime)
		if errs := p.run(t); errs[0] != nil || errs[1] != nil {
			t.Fatalf("client %v, server %v", errs[0], errs[1])
		}
		r := p.records[1].Rows[0]
		if r.Iters != 39 || r.Lost != 1 {
			t.Fatalf("%+v", r)
		}
		took := time.Duration(39 * 1024 / (r.Average * (1 << 20)) * float64(time.Second))
		if took < min(wait, throughTime)/2 {
			return
		}
		if wait > throughTime {
			t.Fatalf("39 messages took %s, and the wait was %s", took, wait)
		}
	}
}

// TestWhoMayBeLate: messages that are not yet there are lost only to an end that waits for some,
// and not while a part of one comes.
func TestWhoMayBeLate(t *testing.T) {
	long := watched{messages: 1, quiet: time.Minute, still: time.Minute}
	part := watched{messages: 1, quiet: time.Minute, still: time.Second}
	silent := func() bool { return false }
	w := watchdog{patience: patience{setupTime, silence, throughTime}}
	for _, tt := range []struct {
		name string
		test Test
		dial bool
		gap  time.Duration
		now  watched
		want error
	}{
		{"receives", Test{Verb: Send}, false, 0, long, errLost},
		{"receives a long one", Test{Verb: Send}, false, 0, part, nil},
		{"sends", Test{Verb: Send}, true, 0, long, nil},
		{"writes", Test{Verb: Write}, true, 0, long, nil},
		{"waits for a WRITE", Test{Write, true}, true, 0, long, errLost},
		{"waits for its own gap", Test{Send, true}, true, time.Minute, long, nil},
	} {
		c := brief(tt.test)
		c.Type, c.Dial, c.Gap = roce.TypeUC, tt.dial, tt.gap
		if err := w.judge(&end{cfg: &c}, tt.now, silent); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	// A first message that does not come begins no time that would end.
	c := brief(Test{Write, true})
	c.Type, c.Duration = roce.TypeUC, 30*time.Second
	for still, want := range map[time.Duration]error{
		c.Duration - 1: nil, c.Duration: errLost,
	} {
		err := w.judge(&end{cfg: &c}, watched{quiet: still, still: still}, silent)
		if !errors.Is(err, want) {
			t.Errorf("nothing for %s: %v, want %v", still, err, want)
		}
	}
}

// TestRateOfOneBatch: of messages that came together, and nothing after them, there is no rate.
func TestRateOfOneBatch(t *testing.T) {
	c := brief(Test{Verb: Send})
	c.Type = roce.TypeUC
	s := &stream{end: &end{cfg: &c}, total: 200, receiving: true, delivered: 3, first: 5000}
	s.clock = newClock()
	s.advance(false)
	if r := s.report(4096); r.Average != 0 || r.MsgRate != 0 || r.Iters != 3 {
		t.Errorf("%+v", r)
	}
	s.clock.zero = s.clock.zero.Add(-time.Second)
	s.advance(true)
	if r := s.report(4096); r.Average <= 0 || r.Average > 4096*3 {
		t.Errorf("%+v", r)
	}
}

// TestRateOfWhatWasSent: what this end sent together took the time from its first post on.
func TestRateOfWhatWasSent(t *testing.T) {
	c := brief(Test{Verb: Send})
	c.Type = roce.TypeUD
	s := &stream{end: &end{cfg: &c}, total: 200, sending: true, receiving: true, completed: 100}
	s.clock = newClock()
	s.clock.zero = s.clock.zero.Add(-time.Second)
	s.advance(false)
	if r := s.report(4096); r.Average <= 0 || r.MsgRate <= 0 {
		t.Errorf("%+v", r)
	}
}

// TestFarBursts: a rate is refused whose bursts are so far apart that the other end gives up, and
// no other one.
func TestFarBursts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		test    Test
		typ     roce.QPType
		iters   int
		rate    float64 // messages a second, 128 at a time
		refused bool
	}{
		{"UD", Test{Verb: Send}, roce.TypeUD, 5000, 14, true},
		{"UD, near enough", Test{Verb: Send}, roce.TypeUD, 5000, 15, false},
		{"UD, one burst", Test{Verb: Send}, roce.TypeUD, 128, 1, false},
		{"UD, by time", Test{Verb: Send}, roce.TypeUD, 0, 2, false},
		{"UD, by time, for ever", Test{Verb: Send}, roce.TypeUD, 0, 1, true},
		{"UC", Test{Verb: Send}, roce.TypeUC, 5000, 14, true},
		{"UC, WRITEs", Test{Verb: Write}, roce.TypeUC, 5000, 2, false},
		{"RC", Test{Verb: Send}, roce.TypeRC, 5000, 2, false},
		{"RC, for ever", Test{Verb: Send}, roce.TypeRC, 5000, 1, true},
	} {
		c := brief(tt.test)
		c.Type, c.Iters, c.TxDepth = tt.typ, tt.iters, 128
		if tt.iters == 0 {
			c.Duration = time.Hour
		}
		c.Rate = Rate{Value: tt.rate, Units: 'p'}
		if err := c.Rate.check(&c); (err != nil) != tt.refused {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
