package transfer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"xroce/engine/sim"
	"xroce/roce"
)

const all = roce.ExtSelectiveRepeat | roce.ExtReorderWindow

// TestExtensionsAreAgreedOn gives the ends different extensions: the connection
// has those of both, and recovers with them from the loss of every 20th frame.
func TestExtensionsAreAgreedOn(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct{ sender, receiver, want roce.Extensions }{
		{0, 0, 0},
		{all, 0, 0},
		{0, all, 0},
		{all, all, all},
		{all, roce.ExtSelectiveRepeat, roce.ExtSelectiveRepeat},
		{roce.ExtReorderWindow, all, roce.ExtReorderWindow},
		{roce.ExtReorderWindow, roce.ExtSelectiveRepeat, 0},
	} {
		r := newRigWith(t, 2*ChunkSize+17, sim.Faults{Drop: 0.05},
			[nodes]roce.Extensions{client: c.sender, server: c.receiver})
		result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{},
			t.Context(), t.Context())
		if sendErr != nil || receiveErr != nil {
			t.Fatalf("%s, %s: %v, %v", c.sender, c.receiver, sendErr, receiveErr)
		}
		got, err := os.ReadFile(filepath.Join(r.dir, result.Path))
		if err != nil || !bytes.Equal(got, r.content) {
			t.Errorf("%s, %s: the file differs, %v", c.sender, c.receiver, err)
		}
		if result.Extensions != c.want {
			t.Errorf("%s, %s: the connection has %s", c.sender, c.receiver, result.Extensions)
		}
		// Only with an extension does the receiver keep what comes behind a gap.
		if held := r.count(t, "held_early") > 0; held != (c.want != 0) {
			t.Errorf("%s, %s: packets were kept: %t", c.sender, c.receiver, held)
		}
	}
}

// count reads a counter of the receiver's device.
func (r *rig) count(t *testing.T, name string) uint64 {
	t.Helper()
	counters, err := r.node[server].dev.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counters {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}
