//go:build !race

package msg_test

import (
	"io"
	"testing"
)

// TestStreamAllocations: bytes cost no memory. The simulated wire does, so it is between two
// namespaces.
func TestStreamAllocations(t *testing.T) {
	hosts := newVeth(t)
	l := listen(t, hosts)
	sa, sb := connectStreams(t, hosts[0].Endpoint, l)
	must(t, l.Close())
	for _, n := range []int{100, 20_000} {
		data, buf := numbers(n), make([]byte, n)
		run := func() {
			_, err := sa.Write(data)
			must(t, err)
			_, err = io.ReadFull(sb, buf)
			must(t, err)
		}
		for range 200 {
			run()
		}
		least := leastAllocations(run)
		if least > 0 {
			t.Errorf("%v allocations for %d bytes", least, n)
		}
	}
}
