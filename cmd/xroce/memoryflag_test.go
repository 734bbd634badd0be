package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestMemoryFlags: what the sockets are to be like is told to the engine, and nonsense is a
// usage error.
func TestMemoryFlags(t *testing.T) {
	for line, want := range map[string]string{
		"--memory 8M": "", "--memory 512k": "", "--memory 4096": "", "--memory 1G": "",
		"--memory 8MB": "want a number of bytes", "--memory 0": "want a number of bytes",
		"--memory -8M": "want a number of bytes", "--memory M": "want a number of bytes",
		"--memory 9999999999G": "want a number of bytes", "--huge-pages": "",
		"--busy-poll 50us": "", "--busy-poll 10ns": "1us to 1s", "--busy-poll -1ms": "1us to 1s",
		"--busy-poll 2s": "1us to 1s", "--backend asavie --memory 8M": "has neither",
	} {
		var f deviceFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(flags)
		if err := flags.Parse(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		o, err := f.options(&app{logger: slog.New(slog.DiscardHandler)})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
		if line == "--memory 8M" && o.Memory != 8<<20 || line == "--huge-pages" && !o.HugePages ||
			line == "--busy-poll 50us" && o.BusyPoll != 50*time.Microsecond {
			t.Errorf("%s: %+v", line, o)
		}
	}
}
