package perf

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"strings"
	"testing"

	"xroce/engine/oob/perftest"
)

// A liar is a connection of an end that reports another bandwidth than it measured.
type liar struct {
	net.Conn
	average float64
	reports *int // values of 8 bytes that were said
}

// Write implements net.Conn.
func (c liar) Write(b []byte) (int, error) {
	const average = 4 // its place in a report
	if len(b) == 8 {
		if *c.reports++; *c.reports == average {
			b = binary.BigEndian.AppendUint64(nil, math.Float64bits(c.average))
		}
	}
	return c.Conn.Write(b)
}

// TestPeerReportsNonsense: what a peer reports is a result only if it is one of a
// measurement: a number that compares with nothing is below no limit.
func TestPeerReportsNonsense(t *testing.T) {
	for _, average := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		for _, both := range []bool{false, true} {
			c := brief(Test{Verb: Write})
			c.Both = both
			p := newPair(t, c)
			p.wrap = func(end int, conn net.Conn) net.Conn {
				if end == 0 {
					return liar{conn, average, new(int)}
				}
				return conn
			}
			errs := p.run(t)
			if !errors.Is(errs[1], perftest.ErrMessage) || len(p.records[1].Rows) > 0 ||
				!strings.Contains(errs[1].Error(), "are no result") {
				t.Errorf("%g: error %v, results %+v", average, errs[1], p.records[1].Rows)
			}
		}
	}
}
