package load

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// WRITEs of blocks with gaps, in two ways in turn over one connection. What one way saves is
// some hundredths, and a processor is faster or slower by more than that from one process to the
// next.

const (
	// turnDepth is how many messages of a turn are in flight at once.
	turnDepth = 16
	// turnMessages are those of a turn. It takes two milliseconds: less than others take the
	// processor for at a time, so that many turns have it to themselves.
	turnMessages = 16
	// aloneMessages are those of a turn in which one is in flight.
	aloneMessages = 4
	// mostTurns bounds what is kept: room for half a minute.
	mostTurns = 1 << 15
)

// prepareFunc prepares a way to send blocks: see blocked.
type prepareFunc func(*conn, worker.Options, *engine.MR) (roce.SendWR, func(*roce.SendWR), error)

// A way sends messages whose blocks it names in its own way.
type way struct {
	wrs    []roce.SendWR // of a message
	before func(*roce.SendWR)
}

// newWay prepares a way to send the blocks of spread. A message is one work request, or as many
// as it takes to list its blocks.
func (c *conn) newWay(
	o worker.Options, spread *engine.MR, prepare prepareFunc, n int,
) (w way, err error) {
	o.Message /= n
	for i := range n {
		wr, before, err := prepare(c, o, spread)
		if err != nil {
			return w, err
		}
		wr.RemoteAddr += uint64(i * o.Message)
		for k := range wr.SGList {
			wr.SGList[k].Addr += uint64(2 * i * o.Message)
		}
		w.wrs, w.before = append(w.wrs, wr), before
	}
	w.wrs[n-1].Flags = roce.SendSignaled
	return w, nil
}

// turn sends messages, so many of them at once, and waits until all are acknowledged.
func (c *conn) turn(w *way, messages, depth int) error {
	for posted, done := 0, 0; done < messages; {
		for ; posted < messages && posted-done < depth; posted++ {
			for i := range w.wrs {
				w.before(&w.wrs[i])
			}
			if _, err := c.qp.PostSends(w.wrs); err != nil {
				return err
			}
		}
		wcs, err := c.poll()
		if err != nil {
			return err
		}
		done += len(wcs)
	}
	return nil
}

// inTurn compares a layout with another way to send the same blocks: the ratio of the report is
// the layout's rate by the other's, by the times that a tenth of their turns stays below: what is
// slow on a machine that others use is the others. Turns go A B B A. With lists the other way
// takes as many work requests as list all blocks of a message; depth is how many messages are in
// flight.
func inTurn(prepare prepareFunc, lists bool, depth int) func(
	*conn, worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	return func(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
		n := 1
		if lists {
			n = o.Message / max(1, blockSGEs*o.Block)
		}
		if o.Block <= 0 || n < 1 || o.Message%(n*o.Block) != 0 {
			return nil, 0, nil, fmt.Errorf("load: %d bytes in blocks of %d", o.Message, o.Block)
		}
		spread, err := c.device.RegMR(c.pd, make([]byte, 2*o.Message), mem.LocalWrite)
		if err != nil {
			return nil, 0, nil, err
		}
		layout, err := c.newWay(o, spread, byLayout, 1)
		if err != nil {
			return nil, 0, nil, err
		}
		other, err := c.newWay(o, spread, prepare, n)
		if err != nil {
			return nil, 0, nil, err
		}
		messages := turnMessages
		if depth == 1 {
			messages = aloneMessages
		}
		ways := [2]*way{&layout, &other}
		w, total, err := c.takeTurns(o, messages, func(i int) error {
			return c.turn(ways[i], messages, depth)
		})
		if err != nil {
			return nil, 0, nil, err
		}
		return w, total, nil, c.note()
	}
}

// errNoTurns means that the window was over before each way had its turn.
var errNoTurns = errors.New("load: the window is too short for a turn of each")

// fastTenth sorts times, of which there is one at least.
func fastTenth(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/10]
}
