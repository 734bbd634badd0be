package perftest

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// TestPlans: two ends that both know plans tell each other theirs; a tool, which does not
// look behind the NUL of a version, is told none.
func TestPlans(t *testing.T) {
	for _, knows := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		type outcome struct {
			plan string
			err  error
		}
		play := func(c *Conn, knows, both bool, plan string) (o outcome) {
			v, got, err := c.Versions(OurVersion, knows)
			if v != OurVersion || got != both || err != nil {
				t.Errorf("version %s, both %v, %v", v, got, err)
			}
			if got {
				o.plan, o.err = c.Plan(plan)
			}
			return o
		}
		both := knows[0] && knows[1]
		server := make(chan outcome)
		go func() { server <- play(New(b, false), knows[1], both, "send") }()
		client, other := play(New(a, true), knows[0], both, "write"), <-server
		if both && (client != outcome{plan: "send"} || other != outcome{plan: "write"}) ||
			!both && (client != outcome{} || other != outcome{}) {
			t.Errorf("%v: client %+v, server %+v", knows, client, other)
		}
	}
}

// TestPlanIsText: what a peer calls its plan is shown to people, so it is plain text.
func TestPlanIsText(t *testing.T) {
	for _, said := range []string{
		pad("\x1b[2J", PlanLen), pad("a\nb", PlanLen), pad("\xff", PlanLen),
		strings.Repeat("x", PlanLen),
	} {
		err := hear(said, func(c *Conn) error { _, err := c.Plan("x"); return err })
		if !errors.Is(err, ErrMessage) {
			t.Errorf("%q: %v", said, err)
		}
	}
	c := New(replay{strings.NewReader(""), io.Discard}, true)
	if _, err := c.Plan(strings.Repeat("x", PlanLen)); !errors.Is(err, ErrMessage) {
		t.Errorf("too long: %v", err)
	}
}
