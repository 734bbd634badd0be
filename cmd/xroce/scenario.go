package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/cmd/xroce/internal/userfile"
)

// besideScenario are the flags that may be given with --scenario: those that say where and how
// long, not what.
var besideScenario = map[string]bool{
	"device": true, "to": true, "queue": true, "xsk-mode": true, "batch": true, "busy": true,
	"capture": true, "metrics": true, "interval": true, "max-loss": true, "scenario": true,
	"json": true, "verbose": true, "log-format": true, "stateful": true, "connect": true,
	"qpn": true, "window": true, "reads": true, "ack-timeout": true, "retry-count": true,
}

// maxScenario is the longest scenario file in bytes.
const maxScenario = 1 << 20

// load takes the plan of the scenario file. --to on the command line has precedence.
func (f *pktgenFlags) load(flags *pflag.FlagSet, a *app) error {
	var other string
	flags.Visit(func(flag *pflag.Flag) {
		if !besideScenario[flag.Name] {
			other = flag.Name
		}
	})
	if other != "" {
		return usagef("--%s and --scenario: the file says what to send", other)
	}
	in := a.stdin
	if f.scenario != "-" {
		file, err := os.Open(f.scenario)
		if err != nil {
			return userfile.Failed(err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxScenario+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", f.scenario, err)
	case len(text) > maxScenario:
		return usagef("%s: a scenario has at most %d bytes", f.scenario, maxScenario)
	}
	plan, err := traffic.ParseScenario(text)
	if err != nil {
		return usagef("%s: %w", f.scenario, err)
	}
	if f.plan.To != "" {
		plan.To = f.plan.To
	}
	if plan.Burst == 0 {
		plan.Burst = 1
	}
	f.plan = plan
	return nil
}
