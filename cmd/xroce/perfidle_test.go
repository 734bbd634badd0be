package main

import (
	"strings"
	"testing"
)

// TestPerfRefusesToStandStill: command lines with which the other end would wait in vain, or that
// never write what they are to.
func TestPerfRefusesToStandStill(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct{ line, want string }{
		{"send-bw -c UC --rate_limit 0.005 --rate_units g", "the other end gives up after 10s"},
		{"send-bw -c UD --rate_limit 10 --rate_units p", "the other end gives up after 10s"},
		{"write-bw --rate_limit 0.0005 --rate_units g", "the other end gives up after 2m0s"},
		{"send-bw --recv_post_list 600 -D 10 -r 512", "--recv_post_list is more than"},
		{"send-bw --recv_post_list 100 -r 64", "--recv_post_list is more than"},
		{"send-bw --recv_post_list 150 -r 512 --use-srq -q 4", "--recv_post_list is more than"},
		{"write-bw --dump x --run_infinitely -D 5", "--dump is of a test that has an end"},
	} {
		i := b.run(t, append([]string{"perf"}, strings.Fields(c.line)...)...)
		if i.code != exitUsage || i.stdout != "" || !strings.Contains(i.stderr, c.want) {
			t.Errorf("%s: code %d, stdout %q, stderr %q", c.line, i.code, i.stdout, i.stderr)
		}
	}
}
