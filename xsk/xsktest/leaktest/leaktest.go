package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"xroce/xsk/xsktest/timeout"
)

// patience is how long a goroutine may take to end that is about to.
const patience = 10 * time.Second

// Main runs the tests of a package for its TestMain, and does not return. When they pass and
// goroutines are left it says which, and the tests have failed.
func Main(m goleak.TestingM) {
	goleak.VerifyTestMain(settling{m, timeout.Scaled(patience)})
}

// settling are tests that end when nothing is left of them or it is late. Goleak looks then.
type settling struct {
	goleak.TestingM
	patience time.Duration
}

// Run implements goleak.TestingM.
func (s settling) Run() (code int) {
	if code = s.TestingM.Run(); code == 0 {
		_ = left(s.patience) // goleak finds it, too
	}
	return code
}

// None has a test fail when goroutines are left that none of the options excuses. No other test
// may run meanwhile: what that has started is taken for a leak.
func None(t testing.TB, excused ...goleak.Option) {
	t.Helper()
	if err := left(timeout.Scaled(patience), excused...); err != nil {
		t.Error(err)
	}
}

// Running excuses those goroutines that run when it is called.
func Running() goleak.Option { return goleak.IgnoreCurrent() }

// left looks until no goroutine is left or it is late, and says which were left last.
func left(patience time.Duration, excused ...goleak.Option) error {
	deadline := time.Now().Add(patience)
	for {
		err := goleak.Find(excused...) // which waits itself while it finds something
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
