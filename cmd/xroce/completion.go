package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xroce/bpf"
	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/perf"
	"xroce/cmd/xroce/internal/pingpong"
	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine"
	"xroce/xsk"
)

// This file says what a shell offers where an argument is to come. Unless told otherwise
// it would offer files, which hardly any argument here is.

// pathMTUs are the values of --mtu.
var pathMTUs = []string{"256", "512", "1024", "2048", "4096"}

// flagValues are what flags of these names can be, in every command that has them.
var flagValues = map[string][]string{
	"atomic_type":     {string(perf.FetchAndAdd), string(perf.CmpAndSwap)},
	"address-format":  {"name", "ip", "ipv6"},
	"backend":         {engine.BackendXSK, engine.BackendAsavie},
	"connection":      {"RC", "UC", "UD"},
	"extensions":      {"all", "selective", "reorder", "piggyback", "none"},
	"large-mode":      msgModes,
	"level":           msgLevels,
	"log-format":      {"text", "json"},
	"mode":            {modeDirect, modeBusy, modeBackground},
	"mtu":             pathMTUs,
	"output":          {"bandwidth", "message_rate", "latency"},
	"port-space":      {"tcp", "udp"},
	"policy":          msgPolicies,
	"protocol":        msgProtocols,
	"rate_limit_type": {"SW", "HW", "PP"},
	"rate_units":      {"M", "g", "p"},
	"transmit": {
		traffic.ByEither.String(), traffic.ByXDP.String(), traffic.BySocket.String(),
	},
	"xdp-mode": {bpf.Auto.String(), bpf.Native.String(), bpf.Generic.String()},
	"xsk-mode": {xsk.ModeAuto.String(), xsk.ModeCopy.String(), xsk.ModeZeroCopy.String()},
}

// Flags that name a device, a file and a directory.
var (
	deviceNames    = []string{"device", "ib-dev"}
	fileFlags      = []string{"capture", "dump", "out_json_file", "plot", "scenario", "token-file"}
	directoryFlags = []string{"dir"}
)

// asksForCompletion reports whether a shell asks what may come next.
func asksForCompletion(args []string) bool {
	return len(args) > 0 &&
		(args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completions tells the shell of all commands below c what their arguments are. What it says of
// flags stays in the process for good (spf13/cobra, flagCompletionFunctions), with the commands and
// all that they hold, so that it is called where a shell asks, and nowhere else.
func (a *app) completions(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.completions(sub)
	}
	switch c.Name() {
	case "copy":
		c.ValidArgsFunction = completeCopy
	case "check":
		c.ValidArgsFunction = a.completeDevice
	default:
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	visit := func(f *pflag.Flag) {
		values, known := flagValues[f.Name]
		if c.Name() == "pingpong" && f.Name == "type" {
			values, known = nil, true
			for _, k := range pingpong.Kinds() {
				values = append(values, string(k))
			}
		}
		complete := cobra.NoFileCompletions
		switch {
		case known:
			complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		case slices.Contains(deviceNames, f.Name):
			complete = a.completeDevice
		case slices.Contains(directoryFlags, f.Name):
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case slices.Contains(fileFlags, f.Name):
			return
		}
		// It fails for a flag that there is not, and for one that has a function already.
		_ = c.RegisterFlagCompletionFunc(f.Name, complete)
	}
	c.LocalNonPersistentFlags().VisitAll(visit)
	c.PersistentFlags().VisitAll(visit)
}

// completeDevice offers the interfaces that can be devices, once.
func (a *app) completeDevice(
	_ *cobra.Command, args []string, _ string,
) ([]string, cobra.ShellCompDirective) {
	list, err := a.machine.Interfaces()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(host.Devices(list)), cobra.ShellCompDirectiveNoFileComp
}

// completeCopy offers files: who serves is not known.
func completeCopy(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
