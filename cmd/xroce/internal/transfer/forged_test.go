package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestForgedChunk: who has no token, and changes what is in a chunk, does no more than who cuts the
// connection: it is sent again.
func TestForgedChunk(t *testing.T) {
	for name, forge := range map[string]func(chunk string) string{
		"changed": func(chunk string) string { return "x" + chunk[1:] },
		"shorter": func(chunk string) string { return chunk[1:] },
		"longer":  func(chunk string) string { return chunk + "x" },
		"large":   func(string) string { return strings.Repeat("x", ChunkSize+1) },
	} {
		r := newRig(t, 10, sim.Faults{})
		r.serve(t, StoreConfig{Keep: time.Hour})
		copy(r.content, "0123456789")
		must(t, os.WriteFile(r.file, r.content, 0o600))
		r.retry = time.Hour
		var mu sync.Mutex
		forged := 0
		sendErr, receiveErr := r.tapped(t, new(tap), func(who, n int, line string) string {
			mu.Lock()
			defer mu.Unlock()
			if who != client || n != data || forged == 2 {
				return line
			}
			forged++
			return forge(line)
		})
		if sendErr != nil || forged != 2 || !errors.Is(receiveErr, ErrLost) {
			t.Errorf("%s: forged %d times: %v, %v", name, forged, sendErr, receiveErr)
		}
		r.whole(t, "x")
	}
}

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
