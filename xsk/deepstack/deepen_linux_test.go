package deepstack_test

import (
	"testing"

	"github.com/safchain/ethtool"

	"xroce/xsk/deepstack"
)

// TestDeepen asks for the features of an interface at every depth of new stacks: where one of them
// grew meanwhile there would be none, or an error.
func TestDeepen(t *testing.T) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		t.Skipf("SKIPPED, needs a socket of ethtool: %v", err)
	}
	defer tool.Close()
	want, err := tool.FeatureNames("lo")
	if err != nil {
		t.Skipf("SKIPPED, needs the ethtool of the kernel: %v", err)
	}
	for depth := range 400 {
		none := make(chan error)
		go func() {
			none <- below(depth, func() error {
				deepstack.Deepen()
				names, err := tool.FeatureNames("lo")
				if len(names) != len(want) && err == nil {
					t.Errorf("%d features at depth %d, not %d", len(names), depth, len(want))
				}
				return err
			})
		}()
		if err := <-none; err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// below calls f so many calls below the caller.
//
//go:noinline
func below(depth int, f func() error) error {
	if depth == 0 {
		return f()
	}
	return below(depth-1, f)
}
