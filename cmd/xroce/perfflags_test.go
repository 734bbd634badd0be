package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/perf"
	"xroce/engine"
)

// TestPerfMemoryFlags: what is asked for of the memory, and of receives in completions, is in
// the configuration of the test.
func TestPerfMemoryFlags(t *testing.T) {
	for line, want := range map[string]func(*perf.Config) bool{
		"": func(c *perf.Config) bool {
			return !c.ODP && !c.HugePages && c.FileOffset == 0 && c.InlineRecv > 0
		},
		"--odp":              func(c *perf.Config) bool { return c.ODP },
		"--use_hugepages":    func(c *perf.Config) bool { return c.HugePages },
		"--mmap-offset 4096": func(c *perf.Config) bool { return c.FileOffset == 4096 },
		"--inline_recv 0": func(c *perf.Config) bool {
			return c.InlineRecv == engine.NoInlineRecv
		},
		"--inline_recv 17": func(c *perf.Config) bool { return c.InlineRecv == 17 },
		"--hop_limit 9":    func(c *perf.Config) bool { return c.HopLimit == 9 },
	} {
		f := newPerfFlags(perf.Test{Verb: perf.Send})
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(flags)
		if err := flags.Parse(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if c, err := f.config(flags, true); err != nil || !want(&c) {
			t.Errorf("%s: %+v, %v", line, c, err)
		}
	}
}
