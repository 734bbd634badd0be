package main

import (
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// complete is what a shell offers at the end of a command line, and its directive.
func complete(t *testing.T, line ...string) (offers []string, directive string) {
	t.Helper()
	i := bench{machine: goodMachine()}.run(t, append([]string{"__complete"}, line...)...)
	if i.code != exitOK {
		t.Fatalf("%q: code %d, %s", line, i.code, i.stderr)
	}
	lines := strings.Split(strings.TrimSpace(i.stdout), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

// TestCompletion offers what an argument can be.
func TestCompletion(t *testing.T) {
	const none, dirs, files = ":4", ":16", ":0"
	devices := []string{"eth0", "eth1"}
	for line, want := range map[string][]string{
		"pingpong --device ":         append(devices, none),
		"pingpong -d ":               append(devices, none),
		"perf send-bw -d ":           append(devices, none),
		"rping -d ":                  append(devices, none),
		"check ":                     append(devices, none),
		"check eth0 ":                {none},
		"pingpong --type ":           {"rc", "uc", "ud", "srq", none},
		"pingpong -m ":               {"256", "512", "1024", "2048", "4096", none},
		"serve --xsk-mode ":          {"auto", "copy", "zero-copy", none},
		"perf send-lat --mode ":      {"direct", "busy", "background", none},
		"serve --xdp-mode ":          {"auto", "native", "generic", none},
		"serve --dir ":               {dirs},
		"copy ":                      {files},
		"copy file ":                 {files},
		"pingpong ":                  {none},
		"pingpong --size ":           {none},
		"perf read-bw --connection ": {"RC", "UC", "UD", none},
		"perf send-bw --dump ":       {files},
		"--log-format ":              {"text", "json", none},
		"version ":                   {none},
		"demo --capture ":            {files},
		"perf atomic-lat -A ":        {"FETCH_AND_ADD", "CMP_AND_SWAP", none},
		"copy --extensions ":         {"all", "selective", "reorder", "piggyback", "none", none},
	} {
		args := strings.Split(line, " ")
		offers, directive := complete(t, args...)
		if got := append(offers, directive); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestNoFlagCompletesFilesByAccident: each flag that is no file says what it is.
func TestNoFlagCompletesFilesByAccident(t *testing.T) {
	a := newApp(nil, nil)
	a.machine = goodMachine()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete, ok := c.GetFlagCompletionFunc(f.Name)
			switch {
			case slices.Contains(fileFlags, f.Name):
				return
			case !ok:
				t.Errorf("%s --%s completes files", c.CommandPath(), f.Name)
				return
			}
			values, directive := complete(c, nil, "")
			known := flagValues[f.Name]
			if directive == cobra.ShellCompDirectiveDefault || !slices.Equal(values, known) &&
				known != nil {
				t.Errorf("%s --%s: %q, directive %d", c.CommandPath(), f.Name, values, directive)
			}
		})
		if c.Runnable() && c.ValidArgsFunction == nil {
			t.Errorf("%s completes files", c.CommandPath())
		}
	}
	root := a.rootCommand()
	a.completions(root)
	walk(root)
}

// TestCommandsAreForgotten: a command that has ended holds no memory.
func TestCommandsAreForgotten(t *testing.T) {
	a := newApp(io.Discard, io.Discard)
	held := weak.Make(a)
	if code := a.run(t.Context(), []string{"version"}); code != exitOK {
		t.Fatal(code)
	}
	runtime.KeepAlive(a)
	runtime.GC()
	if held.Value() != nil {
		t.Error("something still holds it")
	}
}
