package peer

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"xroce/engine/cm"
)

// TestStretch: who connects with a context that was stretched waits so many times longer, and says
// how long that was; without, it is what the caller said.
func TestStretch(t *testing.T) {
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	to := netip.MustParseAddrPort("192.0.2.1:1")
	for ctx, want := range map[context.Context]time.Duration{
		t.Context():             20 * time.Millisecond,
		Stretch(t.Context(), 3): 60 * time.Millisecond,
	} {
		began := time.Now()
		err := Ask(ctx, to, 20*time.Millisecond, silent)
		if !errors.Is(err, cm.ErrTimeout) || !strings.Contains(err.Error(), want.String()) {
			t.Errorf("%v, want a timeout within %v", err, want)
		}
		if took := time.Since(began); took < want {
			t.Errorf("it took %v, want %v", took, want)
		}
	}
}
