package engine_test

import (
	"io"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce/mem"
)

// What a program gets from this package and from cm, and gives back, is an io.Closer.
var (
	_ io.Closer = (*engine.Device)(nil)
	_ io.Closer = (*engine.PD)(nil)
	_ io.Closer = (*engine.MR)(nil)
	_ io.Closer = (*engine.MW)(nil)
	_ io.Closer = (*engine.CQ)(nil)
	_ io.Closer = (*engine.SRQ)(nil)
	_ io.Closer = (*engine.QP)(nil)
	_ io.Closer = (*engine.XRCD)(nil)
	_ io.Closer = (*engine.CompChannel)(nil)
	_ io.Closer = (*engine.ServiceHandle)(nil)
	_ io.Closer = (*cm.Manager)(nil)
	_ io.Closer = (*cm.Listener)(nil)
	_ io.Closer = (*cm.Conn)(nil)
)

// TestClosersTwice closes what a device has in the reverse order of its making, each
// twice, without an error.
func TestClosersTwice(t *testing.T) {
	clock := engine.NewSystemClock()
	dev, _ := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	pd := dev.AllocPD()
	mr, err := dev.RegMR(pd, make([]byte, 64), mem.LocalWrite|mem.MWBind)
	must(t, err)
	mw, err := pd.AllocMW(mem.WindowType2)
	must(t, err)
	cq, err := dev.CreateCQ(8)
	must(t, err)
	qp, err := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq})
	must(t, err)
	for _, c := range []io.Closer{qp, cq, mw, mr, pd} {
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("%T: %v", c, err)
			}
		}
	}
}
