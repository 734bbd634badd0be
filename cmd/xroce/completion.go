package main

import (
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/host"
)

// This file says what a shell offers where an argument is to come. Unless told otherwise
// it would offer files, which hardly any argument here is.

// Flags that name a device, a file and a directory.
var (
	deviceNames = []string{"device", "ib-dev", "interface"}
	fileFlags   = []string{
		"capture", "config", "dump", "fifo", "html", "key", "mmap", "out_json_file", "plot",
		"replay", "scenario", "svg", "token-file", "write",
	}
	directoryFlags = []string{"dir"}
)

// Files among the arguments, as the usage of a command has them, and one that is a flag's.
var (
	flagOfFile = regexp.MustCompile(`-\w FILE`)
	oneFile    = regexp.MustCompile(`\bFILE\b`)
	moreFiles  = regexp.MustCompile(`\bFILE\.\.\.`)
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
	switch arguments := flagOfFile.ReplaceAllString(c.Use, ""); {
	case moreFiles.MatchString(arguments):
		c.ValidArgsFunction = completeFiles
	case oneFile.MatchString(arguments):
		c.ValidArgsFunction = once(completeFiles)
	case c.Name() == "check":
		c.ValidArgsFunction = once(a.completeDevice)
	default:
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	visit := func(f *pflag.Flag) {
		values := valuesOf(c, f)
		complete := cobra.NoFileCompletions
		switch {
		case values != nil:
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

// completeDevice offers the interfaces that can be devices.
func (a *app) completeDevice(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	list, err := a.machine.Interfaces()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(host.Devices(list)), cobra.ShellCompDirectiveNoFileComp
}

// completeFiles offers files. In place of the last one of a copy may be a host, which is not known.
func completeFiles(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// once offers something for the first argument alone.
func once(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(
		c *cobra.Command, args []string, begun string,
	) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, begun)
	}
}
