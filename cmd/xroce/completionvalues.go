package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xroce/bpf"
	"xroce/cmd/xroce/internal/perf"
	"xroce/cmd/xroce/internal/pingpong"
	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine"
	"xroce/engine/sim/congestion"
	"xroce/xsk"
)

// This file says which words a shell offers as the value of a flag.

// pathMTUs are the values of --mtu.
var pathMTUs = []string{"256", "512", "1024", "2048", "4096"}

// flagValues are what flags of these names can be, in every command that has them, unless
// valuesOf knows better.
var flagValues = map[string][]string{
	"address-format": {"name", "ip", "ipv6"},
	"backend":        {engine.BackendXSK, engine.BackendAsavie},
	"congestion":     slices.Sorted(maps.Keys(congestionNames)),
	"extensions":     {"all", "selective", "reorder", "piggyback", "none"},
	"large-mode":     msgModes,
	"level":          msgLevels,
	"log-format":     {"text", "json"},
	"mode":           {modeDirect, modeBusy, modeBackground},
	"mtu":            pathMTUs,
	"over":           {"ud", "rc", "uc", "native"},
	"policy":         msgPolicies,
	"protocol":       msgProtocols,
	"transmit": {
		traffic.ByEither.String(), traffic.ByXDP.String(), traffic.BySocket.String(),
	},
	"xdp-mode": {bpf.Auto.String(), bpf.Native.String(), bpf.Generic.String()},
	"xsk-mode": {xsk.ModeAuto.String(), xsk.ModeCopy.String(), xsk.ModeZeroCopy.String()},
}

// valuesOf are what a flag of a command can be, nil where that is no matter of a few words.
func valuesOf(c *cobra.Command, f *pflag.Flag) []string {
	switch c.Name() + " --" + f.Name {
	case "pingpong --type":
		var kinds []string
		for _, k := range pingpong.Kinds() {
			kinds = append(kinds, string(k))
		}
		return kinds
	case "demo --backend": // it opens a queue several times, which the other cannot
		return []string{engine.BackendXSK}
	case "sim --congestion":
		names := []string{"all", "list"}
		for _, s := range congestion.Scenarios() {
			names = append(names, s.Name)
		}
		return names
	case "tunnel --mtu":
		return nil // that of the interface inside, which is any
	case "ucmatose --port-space", "udaddy --port-space":
		return []string{f.DefValue} // there is no other
	}
	ofPerf := c.HasParent() && c.Parent().Name() == "perf"
	for _, test := range perf.Tests {
		if ofPerf && c.Name() == test.Name() {
			if values := newPerfFlags(test).values(f.Name); values != nil {
				return values
			}
		}
	}
	return flagValues[f.Name]
}
