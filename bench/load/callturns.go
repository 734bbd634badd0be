package load

import (
	"strings"
	"time"

	"xroce/bench/worker"
	"xroce/roce"
)

// Calls over two halves of the queue pairs in turn, of which the second one may be another kind
// of connection: both are then measured by the same processes in the same milliseconds.

// callsOfTurn are those of a turn, less than a millisecond.
const callsOfTurn = 256

// halves is how modes end in which acknowledges ride on requests of the second half alone.
const halves = "-halves"

// extensionsOf are those of queue pair i.
func (c *conn) extensionsOf(o worker.Options, i int) roce.Extensions {
	if strings.HasSuffix(o.Mode, halves) && i >= len(c.qps)/2 {
		return roce.ExtPiggybackAck
	}
	return extensions(o)
}

// callTurn makes calls over the queue pairs from first on, so many, with one under way on each. The
// error is errUnanswered when no answer comes for too long.
func (c *conn) callTurn(first, n int, wr *roce.SendWR) error {
	posted := 0
	for ; posted < n; posted++ {
		if err := c.qps[first+posted].PostSend(wr); err != nil {
			return err
		}
	}
	quiet := lull{}
	for came := 0; came < callsOfTurn; {
		done, err := c.poll()
		if err != nil {
			return err
		}
		if err := quiet.heard(len(done), c.now); err != nil {
			return err
		}
		for k := range done {
			if done[k].Opcode != roce.WCRecv {
				continue
			}
			i := done[k].WRID
			came++
			if err := c.receive(i); err != nil {
				return err
			}
			if posted == callsOfTurn {
				continue
			}
			posted++
			if err := c.qps[i].PostSend(wr); err != nil {
				return err
			}
		}
	}
	return nil
}

// rcCallInTurn calls over one half and the other: the ratio of the report is the second one's rate
// by that of the first.
func rcCallInTurn(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	wr, err := c.beginCalls(o)
	if err != nil {
		return nil, 0, nil, err
	}
	half := len(c.qps) / 2
	w, total, err := c.takeTurns(o, callsOfTurn, func(i int) error {
		return c.callTurn((1-i)*half, half, &wr)
	})
	if err != nil {
		return nil, 0, nil, err
	}
	c.linger()
	return w, total, nil, nil
}

// takeTurns lets two ways have turns of so many messages, A B B A, until the end of the window.
// The ratio of the conn is the rate of way 0 by that of way 1, by the times that a tenth of their
// turns stays below: what is slow on a machine that others use is the others.
func (c *conn) takeTurns(o worker.Options, messages int, turn func(way int) error) (
	*worker.Window, uint64, error,
) {
	var took [2][]time.Duration
	for i := range took {
		took[i] = make([]time.Duration, 0, mostTurns)
	}
	var total uint64
	w := c.newWindow(o)
	for first := 0; w.Tick(w.Now(), total) && len(took[1]) < mostTurns; first = 1 - first {
		for _, i := range [2]int{first, 1 - first} {
			begin := w.Now()
			if err := turn(i); err != nil {
				return nil, 0, err
			}
			if w.Open() {
				took[i] = append(took[i], w.Now()-begin)
			}
			total += uint64(messages)
		}
	}
	w.Close(total)
	if len(took[0]) == 0 {
		return nil, 0, errNoTurns
	}
	c.ratio = fastTenth(took[1]).Seconds() / fastTenth(took[0]).Seconds()
	return w, total, nil
}
