package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// saysFile and saysDirectory find what the help says of a flag that is one, or of something else.
var (
	saysFile      = regexp.MustCompile(`\bfile\b`)
	saysDirectory = regexp.MustCompile(`\bdirectory\b`)
)

// noFile are flags of which the help says that word, and that are none.
var noFile = []string{"serve --mode-mask"}

// silentFiles are flags that are a file or a directory, and of which the help does not say so.
var silentFiles = map[string]cobra.ShellCompDirective{
	"extcap --fifo": cobra.ShellCompDirectiveDefault,
	"extcap --dir":  cobra.ShellCompDirectiveFilterDirs,
}

// otherTexts are flags whose value is a text for which the shell offers nothing: a number with a
// unit, an address, what only the command can tell from something else. Of each other flag that is
// a text it offers something, so that a new one is thought of.
var otherTexts = []string{
	"MGID", "addr", "bind", "extcap-capture-filter", "extcap-interface", "extcap-version",
	"force-link", "format", "from", "group", "kind", "line-rate", "listen", "memory", "metrics",
	"mode-mask", "payload", "port-space-number", "queues", "rate", "report-counters",
	"seeds", "server", "size", "source", "speed", "tap", "to", "tun",
}

// directiveOf is what a shell is told of a flag or, without a function, what it does.
func directiveOf(c *cobra.Command, f *pflag.Flag) (offered []string, d cobra.ShellCompDirective) {
	if complete, ok := c.GetFlagCompletionFunc(f.Name); ok {
		return complete(c, nil, "")
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// TestFlagsOfFilesCompleteFiles: of each flag that is a file by what its help says of it the shell
// offers files, of each that is a directory directories, and of no other one.
func TestFlagsOfFilesCompleteFiles(t *testing.T) {
	files := 0
	eachFlag(completedRoot(), func(c *cobra.Command, f *pflag.Flag) {
		name := strings.TrimPrefix(c.CommandPath(), "xroce ") + " --" + f.Name
		_, help := pflag.UnquoteUsage(f)
		want, silent := silentFiles[name]
		text := f.Value.Type() == "string" && !f.Hidden
		switch {
		case f.Value.Type() == "bool":
			return // nobody types a value
		case silent:
		case text && saysFile.MatchString(help) && !slices.Contains(noFile, name):
			want = cobra.ShellCompDirectiveDefault
		case text && saysDirectory.MatchString(help):
			want = cobra.ShellCompDirectiveFilterDirs
		default:
			want = cobra.ShellCompDirectiveNoFileComp
		}
		offered, got := directiveOf(c, f)
		if got != want {
			t.Errorf("%s: directive %d, want %d: %s", name, got, want, help)
		}
		if want != cobra.ShellCompDirectiveNoFileComp {
			files++
			return
		}
		if text && offered == nil && !slices.Contains(otherTexts, f.Name) {
			t.Errorf("%s: the shell offers nothing, and no list here says why: %s", name, help)
		}
	})
	if files < 40 {
		t.Errorf("only %d flags are files", files)
	}
}

// TestArgumentsOfFilesCompleteFiles: as the usage of a command has it, FILE... and FILE are files,
// the first argument or all, and FILE behind a flag is the flag's.
func TestArgumentsOfFilesCompleteFiles(t *testing.T) {
	const none, files = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveDefault
	seen := map[string]bool{}
	eachCommand(completedRoot(), func(c *cobra.Command) {
		if !c.Runnable() {
			return
		}
		want := []cobra.ShellCompDirective{none, none}
		switch words := strings.Fields(c.Use); {
		case slices.Contains(words, "FILE..."):
			want = []cobra.ShellCompDirective{files, files}
		case slices.Contains(words, "FILE"): // "-w FILE]" is another word
			want[0] = files
		}
		if c.ValidArgsFunction == nil {
			t.Fatalf("%s: nothing says what its arguments are", c.CommandPath())
		}
		for n, want := range want {
			_, got := c.ValidArgsFunction(c, []string{"a", "b"}[:n], "")
			if got != want {
				t.Errorf("%s, argument %d: directive %d, want %d", c.Use, n+1, got, want)
			}
			seen[c.Name()] = seen[c.Name()] || want == files
		}
	})
	for _, name := range []string{"copy", "decode", "analyze"} {
		if !seen[name] {
			t.Errorf("%s has no FILE", name)
		}
	}
}
