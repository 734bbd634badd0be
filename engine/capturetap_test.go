package engine_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/gopacket/pcapgo"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/roce"
)

// A captureTap keeps the frames in a capture.
type captureTap struct{ *capture.Writer }

func (c captureTap) Frame(dir capture.Direction, head, tail []byte) {
	c.Writer.Frame(time.Unix(1, 0), dir, head, tail)
}

// A pausedReader takes nothing until it is told to.
type pausedReader struct {
	bytes.Buffer
	resume chan struct{}
}

func (p *pausedReader) Write(b []byte) (int, error) {
	<-p.resume
	return p.Buffer.Write(b)
}

// TestCaptureReaderPauses: whoever reads the capture of a device stops no connection. What
// is missing is counted, and the rest can be read.
func TestCaptureReaderPauses(t *testing.T) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{})
	reader := &pausedReader{resume: make(chan struct{})}
	writer := capture.NewWriter(reader, "a", 0)
	devA := openPort(t, network, 0, engine.Options{
		Clock: clock, Direct: true, Tap: captureTap{writer},
	})
	devB := openPort(t, network, 1, engine.Options{Clock: clock, Direct: true})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	const writes = 4
	postWrites(t, a, b, writes, regionSize)
	var wcs [writes]roce.Completion
	got := 0
	done := func() bool {
		n, err := a.cq.Poll(wcs[got:])
		if err != nil {
			t.Fatal(err)
		}
		got += n
		return got == writes
	}
	if err := network.Run(clock, clock.Now()+roce.Second, done, devA, devB); err != nil {
		t.Fatal(err)
	}
	for _, wc := range wcs {
		if wc.Status != roce.StatusSuccess {
			t.Errorf("write %d: %s", wc.WRID, wc.Status)
		}
	}
	values := counters(t, devA)
	if values["retransmits"] != 0 || values["tap_dropped"] == 0 {
		t.Errorf("%d packets sent again, %d missing in the capture",
			values["retransmits"], values["tap_dropped"])
	}
	close(reader.resume)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&reader.Buffer, pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept := uint64(0)
	for _, _, err = r.ReadPacketData(); err == nil; _, _, err = r.ReadPacketData() {
		kept++
	}
	iface, _ := r.Interface(0)
	passed := values["tx_packets"] + values["rx_packets"]
	if kept == 0 || kept+values["tap_dropped"] != passed ||
		iface.Statistics.PacketsDropped != values["tap_dropped"] {
		t.Errorf("%d frames kept and %d dropped of %d, statistics %+v; %v", kept,
			values["tap_dropped"], passed, iface.Statistics, err)
	}
}
