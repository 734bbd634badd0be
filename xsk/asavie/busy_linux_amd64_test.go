package asavie_test

import (
	"testing"
	"time"

	"xroce/xsk"
	"xroce/xsk/asavie"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestOpenWaitsForTheQueue: a queue that another socket still has is waited for,
// as xsk.Open does and the library does not.
func TestOpenWaitsForTheQueue(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	p.Do(xsktest.A, func() {
		first, err := xsk.Open(xsk.Config{Interface: vethpair.IfName, RxFrames: 64, TxFrames: 64})
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		// Longer than the first waits: the first tries find the queue taken.
		time.AfterFunc(50*time.Millisecond, func() { closed <- first.Close() })
		second, err := asavie.Open(asavie.Config{Interface: vethpair.IfName})
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}
