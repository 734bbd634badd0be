package perf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// planSep is between the parts of a plan.
const planSep = ", "

// plan says what both ends must have been told alike, as the flags of the tool. The tools
// do not compare it: they wait for each other, or one fails.
func (c *Config) plan() string {
	parts := []string{c.Test.Name(), "-c " + c.Type.String(), "-q " + strconv.Itoa(c.QPs)}
	size := "-s " + strconv.Itoa(c.Size)
	if c.All {
		size = "-a"
	}
	length := "-n " + strconv.Itoa(c.Iters)
	if c.Duration > 0 {
		length = "-D " + strconv.Itoa(int(c.Duration/time.Second))
	}
	parts = append(parts, size, length)
	for _, flag := range []struct {
		name string
		on   bool
	}{
		{"-b", c.Both},
		{"--reversed", c.Reversed},
		{"--run_infinitely", c.Infinite},
		{"-z", c.ManagedExchange},
		{"-g -M " + c.Group.Addr().String(), !c.Group.IsZero()},
		// The unit of the reports, where the ends tell each other.
		{"--report_gbits", c.Gbits && !c.Test.Latency && (c.Test.Verb != Send || c.Both)},
	} {
		if flag.on {
			parts = append(parts, flag.name)
		}
	}
	return strings.Join(parts, planSep)
}

// comparePlans tells the peer what this end is about to do. The error says in what the
// ends differ; both have it at once.
func (r *run) comparePlans() error {
	local := r.info.plan()
	remote, err := r.via.Plan(local)
	if err != nil || local == remote {
		return err
	}
	return fmt.Errorf("the ends were started differently: %s here, %s at the peer",
		lacking(local, remote), lacking(remote, local))
}

// lacking lists what a plan has and the other lacks.
func lacking(plan, other string) string {
	theirs := strings.Split(other, planSep)
	parts := slices.DeleteFunc(strings.Split(plan, planSep), func(s string) bool {
		return slices.Contains(theirs, s)
	})
	if len(parts) == 0 {
		return "nothing of that"
	}
	return strings.Join(parts, planSep)
}
