package main

import (
	"maps"
	"slices"
	"strings"

	"xroce/cmd/xroce/internal/perf"
	"xroce/roce"
)

// This file has the values that flags of a test can have, for who reads the flags, for the help and
// for the shell.

// perfConnections are those of --connection.
func perfConnections(v perf.Verb) []string {
	types := []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeUD, roce.TypeRawPacket}
	switch v {
	case perf.Write:
		types = types[:2]
	case perf.Read, perf.Atomic:
		types = types[:1]
	}
	var names []string
	for _, t := range types {
		names = append(names, t.String())
	}
	return names
}

// connectionTypes is perfConnections in words.
func connectionTypes(v perf.Verb) string {
	names := perfConnections(v)
	last := len(names) - 1
	if last == 0 {
		return "there is " + names[last]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Values of --rate_limit_type and --rate_units.
var (
	perfRateTypes = []string{"HW", "SW"}
	perfRateUnits = []string{"M", "g", "p"}
)

// perfOutputs are the values of --output.
var perfOutputs = map[string]perf.Output{
	"": perf.OutputFull, "bandwidth": perf.OutputBandwidth,
	"message_rate": perf.OutputMessageRate, "latency": perf.OutputLatency,
}

// fits reports whether the test has the number that is to be printed.
func (f *perfFlags) fits(o perf.Output) bool {
	return o == perf.OutputFull || (o == perf.OutputLatency) == f.test.Latency
}

// values are those that a shell offers for a flag of the test, nil for one that every command may
// have.
func (f *perfFlags) values(flag string) []string {
	switch flag {
	case "atomic_type":
		return []string{string(perf.FetchAndAdd), string(perf.CmpAndSwap)}
	case "connection":
		return perfConnections(f.test.Verb)
	case "output":
		return slices.DeleteFunc(slices.Sorted(maps.Keys(perfOutputs)), func(name string) bool {
			return name == "" || !f.fits(perfOutputs[name])
		})
	case "rate_limit_type":
		if f.test.Verb == perf.Atomic { // their loops have no pace
			return []string{"HW"}
		}
		return perfRateTypes
	case "rate_units":
		if f.test.Verb == perf.Atomic { // queue pairs do not count messages
			return []string{"M", "g"}
		}
		return perfRateUnits
	}
	return nil
}
