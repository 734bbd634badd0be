package load

import (
	"errors"
	"fmt"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// Blocks of bytes that lie in memory with gaps as long as themselves, written to the
// other end as one: in the ways that there are.

// blockSGEs is how many pieces a work request takes that lists the blocks.
const blockSGEs = roce.MaxSGE

// blocked returns a work that streams WRITEs of o.Message bytes in blocks of o.Block.
// prepare returns the work request, and what is to be done before each is posted.
func blocked(
	prepare prepareFunc,
) func(*conn, worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	return func(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
		if o.Block <= 0 || o.Message%o.Block != 0 {
			return nil, 0, nil, fmt.Errorf("load: %d bytes in blocks of %d", o.Message, o.Block)
		}
		spread, err := c.device.RegMR(c.pd, make([]byte, 2*o.Message), mem.LocalWrite)
		if err != nil {
			return nil, 0, nil, err
		}
		wr, before, err := prepare(c, o, spread)
		if err != nil {
			return nil, 0, nil, err
		}
		w, total, err := c.streamOf(o, wr, before)
		if err != nil {
			return nil, 0, nil, err
		}
		return w, total, nil, c.note()
	}
}

// asBefore does nothing.
func asBefore(*roce.SendWR) {}

// byLayout names the blocks by one key.
func byLayout(
	c *conn, o worker.Options, spread *engine.MR,
) (roce.SendWR, func(*roce.SendWR), error) {
	wr := c.writeTo(o)
	r, err := c.device.RegIndirect(c.pd, 1)
	if err != nil {
		return wr, nil, err
	}
	n := uint64(o.Block)
	err = r.ReregInterleaved(mem.ChangeTranslation, nil, 0, []uint64{uint64(o.Message) / n},
		[]mem.Block{spread.Block(0, n, 2*n)})
	wr.SGList = []roce.SGE{r.SGE(0, o.Message)}
	return wr, asBefore, err
}

// byHand copies the blocks to a buffer, one for each message that is in flight.
func byHand(
	c *conn, o worker.Options, spread *engine.MR,
) (roce.SendWR, func(*roce.SendWR), error) {
	wr := c.writeTo(o)
	depth, _ := pipeline(o.Message)
	packed, err := c.device.RegMR(c.pd, make([]byte, int(depth)*o.Message), 0)
	if err != nil {
		return wr, nil, err
	}
	slot := 0
	return wr, func(wr *roce.SendWR) {
		pack(packed.Bytes()[slot*o.Message:][:o.Message], spread.Bytes(), o.Block)
		wr.SGList[0] = packed.SGE(slot*o.Message, o.Message)
		slot = (slot + 1) % int(depth)
	}, nil
}

// bySGEs lists the blocks in the work request, which has room for all.
func bySGEs(
	c *conn, o worker.Options, spread *engine.MR,
) (roce.SendWR, func(*roce.SendWR), error) {
	wr := c.writeTo(o)
	if o.Message != blockSGEs*o.Block {
		return wr, nil, errors.New("load: the blocks are not those of one work request")
	}
	wr.SGList = nil
	for i := range blockSGEs {
		wr.SGList = append(wr.SGList, spread.SGE(2*i*o.Block, o.Block))
	}
	return wr, asBefore, nil
}
