package play

import (
	"context"
	"fmt"
	"regexp"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// packetsBeforeCut is how many requests and data a cable carries before it is cut.
const packetsBeforeCut = 20

// cut has the cable lose everything after some packets.
func (w *watch) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := packetsBeforeCut
	w.each = func(_ softroce.End, p *wire.Packet) bool {
		if !p.Spec.Is(wire.ClassAck) {
			left--
		}
		return left < 0
	}
}

// result is a row of perftest's table of results.
var result = regexp.MustCompile(`(?m)^ *\d+ +\d+ +\d+\.\d+ `)

// failing waits until xroce has ended, and says what went wrong, "" for nothing: it must
// fail by itself and tell no result. The tool, which may wait for longer, is stopped.
func failing(ctx context.Context, ends [2]lab.End, r cases.Role) (wrong string) {
	ours := ends[client]
	if r == cases.WeServe {
		ours = ends[server]
	}
	select {
	case <-ours.Done:
		switch row := result.FindString(ours.Output()); {
		case ours.Status() == 0:
			wrong = fmt.Sprintf("%s ended with status 0", ours.Name)
		case row != "":
			wrong = fmt.Sprintf("%s failed and has a result: %s", ours.Name, row)
		}
	case <-ctx.Done():
		wrong = "not done in time"
	}
	return lab.KillBoth(ends, wrong)
}
