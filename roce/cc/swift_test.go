package cc_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/cc"
	"xroce/roce/clock"
)

// near compares a window.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*max(1, want) {
		t.Errorf("%s is %.9f, not %.9f", what, got, want)
	}
}

// TestSwiftTrace follows algorithm 1 of the paper by hand, without flow scaling: the target is
// 25 us.
func TestSwiftTrace(t *testing.T) {
	p := cc.Config{}.Defaults().Swift
	p.FlowScaling, p.MaxWindow = 0, 16
	s := cc.NewSwift(p)
	near(t, "the first window", s.Packets(), 16)

	s.Acknowledged(100*us, 4, 50*us) // twice the target: 1 - 0.8*25/50
	near(t, "the window", s.Packets(), 9.6)
	s.Acknowledged(149*us, 4, 50*us) // within a round trip
	near(t, "the window", s.Packets(), 9.6)
	s.Acknowledged(600*us, 4, 500*us) // 1 - 0.8*475/500 is below a half
	near(t, "the window", s.Packets(), 4.8)
	s.Acknowledged(610*us, 3, 20*us) // below the target: 3 of a round trip's 4.8 packets
	near(t, "the window", s.Packets(), 4.8+3/4.8)
	s.Lost(660*us, false)
	near(t, "the window", s.Packets(), (4.8+3/4.8)/2)
	s.Lost(661*us, false) // the same loss
	near(t, "the window", s.Packets(), (4.8+3/4.8)/2)
	if s.Rate() != 0 || s.Window() != 2 {
		t.Errorf("rate %d, window %d", s.Rate(), s.Window())
	}

	for i := range clock.Time(5) {
		s.Lost((700+20*i)*us, true)
	}
	near(t, "the window after timeouts", s.Packets(), 0.01)
	s.Sent(0, 1250)
	// A hundredth of 10,000 bits in 20 us.
	if s.Rate() != 5000 || s.Window() != 1 {
		t.Errorf("rate %d, window %d", s.Rate(), s.Window())
	}
	s.Acknowledged(clock.Millisecond, 1, 10*us)
	near(t, "the window", s.Packets(), 1.01)
}

// TestSwiftScaling: the target grows as the window shrinks, from 25 us at 100 packets by 50 us
// at 0.1.
func TestSwiftScaling(t *testing.T) {
	for window, want := range map[float64]clock.Time{
		100: 25 * us, 256: 25 * us, 0.1: 75 * us, 0.01: 75 * us,
		// 50 us * (1/sqrt(1) - 1/10) / (1/sqrt(0.1) - 1/10)
		1: 25*us + clock.Time(50_000*0.9/(math.Sqrt(10)-0.1)),
	} {
		p := cc.Config{}.Defaults().Swift
		p.MaxWindow, p.MinWindow = window, window/2
		if got := cc.NewSwift(p).TargetDelay(); got < want-1 || got > want+1 {
			t.Errorf("window %v: the target is %d, not %d", window, got, want)
		}
	}
}

// TestSwiftBounds: whatever comes, window and rate are in their bounds.
func TestSwiftBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cc.NewSwift(cc.Config{}.Defaults().Swift)
		now := clock.Time(0)
		for range 200 {
			now += clock.Time(rapid.Int64Range(0, int64(clock.Second)).Draw(t, "wait"))
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				s.Acknowledged(now, rapid.Uint32Range(1, 1<<16).Draw(t, "packets"),
					clock.Time(rapid.Int64Range(0, 1<<40).Draw(t, "rtt")))
			case 1:
				s.Lost(now, rapid.Bool().Draw(t, "timeout"))
			case 2:
				s.Sent(now, rapid.IntRange(60, 9000).Draw(t, "bytes"))
			}
			if w := s.Packets(); !(w >= 0.01 && w <= 256) || s.Window() < 1 || s.Window() > 256 {
				t.Fatalf("window %v, %d", w, s.Window())
			}
			if s.Packets() >= 1 && s.Rate() != 0 {
				t.Fatalf("window %v, rate %d", s.Packets(), s.Rate())
			}
		}
	})
}

// TestConfig: the zero configuration is the published one, and what cannot be is refused.
func TestConfig(t *testing.T) {
	c := cc.Config{}.Defaults()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if c.CNPDSCP != 48 || c.CNPPriority != 6 || c.CNPInterval != 50*us || c.LineRate != 1e8 {
		t.Errorf("%+v", c)
	}
	for a := range cc.Algorithm(4) {
		controller := c.New(a)
		if is := controller != nil; is != (a == cc.AlgorithmDCQCN || a == cc.AlgorithmSwift) {
			t.Errorf("%s: a controller: %t", a, is)
		}
	}
	for i, bad := range []func(c *cc.Config){
		func(c *cc.Config) { c.Algorithm = 3 },
		func(c *cc.Config) { c.CNPDSCP = 64 },
		func(c *cc.Config) { c.CNPPriority = 8 },
		func(c *cc.Config) { c.CNPInterval = -1 },
		func(c *cc.Config) { c.DCQCN.G = math.NaN() },
		func(c *cc.Config) { c.DCQCN.RateTimer = 1 },
		func(c *cc.Config) { c.DCQCN.AlphaTimer = 2 * clock.Second },
		func(c *cc.Config) { c.DCQCN.ByteCounter = 1 },
		func(c *cc.Config) { c.DCQCN.MinRate = c.LineRate + 1 },
		func(c *cc.Config) { c.Swift.Target = -1 },
		func(c *cc.Config) { c.Swift.ScaleMin = 200 },
		func(c *cc.Config) { c.Swift.MinWindow = math.NaN() },
		func(c *cc.Config) { c.Swift.MaxDecrease = 1 },
	} {
		c := cc.Config{}.Defaults()
		bad(&c)
		if err := c.Check(); !errors.Is(err, cc.ErrConfig) {
			t.Errorf("%d: %v", i, err)
		}
	}
}
