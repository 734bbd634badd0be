package main

import (
	"fmt"
	"strings"

	"xroce/cmd/xroce/internal/perf"
	"xroce/engine"
)

// perfCounters are the counters of -W: how much they grow during a test. It is a perf.Reporter,
// since the test begins when it has been told so.
type perfCounters struct {
	perf.Record
	names  []string // as the user wrote them
	dev    *engine.Device
	before map[string]uint64
	err    error
}

// maxPerfCounters is how many names -W takes.
const maxPerfCounters = 256

// newPerfCounters reads a list of names with commas between them; no list is no names. The
// directories that they are in for the tool, counters/ and hw_counters/, may be before them.
func newPerfCounters(list string) (*perfCounters, error) {
	c := &perfCounters{}
	if list == "" {
		return c, nil
	}
	if c.names = strings.Split(list, ","); len(c.names) > maxPerfCounters {
		return nil, usagef("-W: %d counters are more than %d", len(c.names), maxPerfCounters)
	}
	return c, nil
}

// counterName is what we call a counter that the user has named.
func counterName(written string) string {
	return strings.TrimPrefix(strings.TrimPrefix(written, "hw_"), "counters/")
}

// check takes the device, which must have all counters.
func (c *perfCounters) check(dev *engine.Device) error {
	if len(c.names) == 0 {
		return nil
	}
	c.dev = dev
	known, err := c.read()
	if err != nil {
		return err
	}
	for _, name := range c.names {
		if _, ok := known[counterName(name)]; !ok {
			return usagef("-W %s: there is no such counter; 'xroce stat -a' shows all", name)
		}
	}
	return nil
}

func (c *perfCounters) read() (map[string]uint64, error) {
	list, err := c.dev.Counters()
	if err != nil {
		return nil, err
	}
	values := make(map[string]uint64, len(list))
	for _, counter := range list {
		values[counter.Name] = counter.Value
	}
	return values, nil
}

// Begins implements perf.Reporter.
func (c *perfCounters) Begins(*perf.Info) {
	if len(c.names) > 0 {
		c.before, c.err = c.read()
	}
}

// Row implements perf.Reporter.
func (c *perfCounters) Row(*perf.Info, *perf.Row) {}

// Interval implements perf.Reporter.
func (c *perfCounters) Interval(*perf.Info, *perf.Interval) {}

// differences are by how much they have grown since the test began, in the order of the names.
// What can also shrink, such as work requests that are posted, may have.
func (c *perfCounters) differences() ([]perf.CounterJSON, error) {
	if len(c.names) == 0 || c.err != nil {
		return nil, c.err
	}
	now, err := c.read()
	if err != nil {
		return nil, err
	}
	var list []perf.CounterJSON
	for _, name := range c.names {
		ours := counterName(name)
		list = append(list, perf.CounterJSON{
			Name: name, Difference: int64(now[ours] - c.before[ours]),
		})
	}
	return list, nil
}

// counterLines are the lines that the tool prints.
func counterLines(list []perf.CounterJSON) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "\t%s=%d\n", d.Name, d.Difference)
	}
	b.WriteString("\n")
	return b.String()
}
