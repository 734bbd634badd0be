package perf

import (
	"errors"
	"testing"
	"time"

	"xroce/roce"
)

// TestLastMessages: an end that has got messages waits for more for some seconds after its peer was
// through: it may have to share its processor. Then they are lost.
func TestLastMessages(t *testing.T) {
	for _, c := range []struct {
		quiet    time.Duration
		messages uint64
		heard    bool
		want     error
	}{
		{quiet: 4 * time.Second, messages: 1, heard: true},
		{quiet: 5 * time.Second, messages: 1, heard: true, want: errLost},
		{quiet: 9 * time.Second, messages: 1},
		{quiet: 10 * time.Second, messages: 1, want: errLost},
		{quiet: 20 * time.Second},
	} {
		config := brief(Test{Verb: Send})
		config.Type = roce.TypeUD
		w := watchdog{patience: patience{setupTime, silence, throughTime}}
		now := watched{messages: c.messages, quiet: c.quiet, still: c.quiet}
		err := w.judge(&end{cfg: &config}, now, func() bool { return c.heard })
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
