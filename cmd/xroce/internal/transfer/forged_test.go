package transfer

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestForgedEndKeepsThePart: who has no token, and says in the name of a client that it gives up,
// does no more than who cuts the connection: the rest can be sent later.
func TestForgedEndKeepsThePart(t *testing.T) {
	for name, forged := range map[string]string{
		"an error":       `{"error":"x"}`,
		"with a code":    strings.Repeat("0", codeLen) + `{"error":"x"}`,
		"something else": `{"sha256":"00"}`,
		"much":           strings.Repeat("x", maxMessage+1),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 10, sim.Faults{})
			r.serve(t, StoreConfig{Keep: time.Hour})
			written := make(chan struct{})
			receive := ReceiveConfig{Progress: func(done, total int64) {
				if done == total {
					close(written)
				}
			}}
			sendErr, receiveErr := r.tappedTo(t, receive, new(tap),
				func(who, n int, line string) string {
					if who != client || n != 2 { // behind the data
						return line
					}
					_ = await(t.Context(), written, nil, timeout.Scaled(time.Minute))
					return forged
				})
			parts, err := filepath.Glob(filepath.Join(r.dir, partPrefix+"*"))
			if err != nil || len(parts) != 1 || sendErr == nil || !errors.Is(receiveErr, ErrLost) {
				t.Fatalf("%v, %v: %d parts, %v", sendErr, receiveErr, len(parts), err)
			}
			result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"},
				ReceiveConfig{Token: right}, t.Context(), t.Context())
			if sendErr != nil || receiveErr != nil || result.Resumed != 10 {
				t.Errorf("%+v, %v, %v", result, sendErr, receiveErr)
			}
			r.whole(t, "x")
		})
	}
}
