package cases

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Plan() {
		name := c.Name()
		if seen[name] {
			t.Errorf("two cases are called %s", name)
		}
		seen[name] = true
		tool := ToolOf(c.Tool)
		if tool == nil {
			t.Errorf("%s: no such tool", name)
			continue
		}
		our, their := tool.Lines(c)
		if need := tool.Needs(c); need != "" && tool.command[0] != "perf" {
			t.Errorf("%s needs %s, which xroce %s has not", name, need, tool.command)
		}
		host := map[int]string{4: "192.0.2.", 6: "2001:db8::"}[c.Family]
		if c.CM && !strings.Contains(strings.Join(our, " ")+their, host) {
			t.Errorf("%s has no address of its family: %v, %s", name, our, their)
		}
		if c.Role == TheyServe && tool.server != "" && !strings.HasPrefix(their, tool.server+" ") {
			t.Errorf("%s: their server is %s", name, their)
		}
	}
}

// Both programs of a case must be told the same.
func TestLines(t *testing.T) {
	usual := strconv.Itoa(ackTimeout(Case{}))
	brief := strconv.Itoa(ackTimeout(Case{Fault: Larger}))
	for _, c := range []struct {
		Case
		our, their string
	}{
		{
			Case{Tool: "ibv_ud_pingpong", Role: TheyServe, MTU: 1024, Family: 6, Size: 7},
			"pingpong -d xr0 -g 2 -c -s 7 -n 200 --type ud 192.0.2.2",
			"ibv_ud_pingpong -d rxe0 -g 2 -c -s 7 -n 200",
		},
		{
			Case{
				Tool: "ib_write_bw", Role: WeServe, Transport: "RC", CM: true, Family: 6,
				Size: 1 << 20,
			},
			"perf write-bw -d xr0 -x 2 -n 10 -F -s 1048576 -u " + usual + " -R -v",
			"ib_write_bw -d rxe0 -x 2 -n 10 -F -s 1048576 -u " + usual + " -R 2001:db8::1",
		},
		{
			Case{
				Tool: "ib_send_bw", Transport: "RC", Role: TheyServe, Family: 4, Size: 8192,
				Fault: Larger,
			},
			"perf send-bw -d xr0 -x 1 -n 200 -F -s 32768 -u " + brief + " 192.0.2.2",
			"ib_send_bw -d rxe0 -x 1 -n 200 -F -s 8192 -u " + brief,
		},
		{
			Case{
				Tool: "ib_send_bw", Transport: "RC", Role: WeServe, Family: 4, Size: 8192,
				Fault: Fewer,
			},
			"perf send-bw -d xr0 -x 1 -n 200 -F -s 8192 -u " + brief + " -v",
			"ib_send_bw -d rxe0 -x 1 -n 100 -F -s 8192 -u " + brief + " 192.0.2.1",
		},
		{
			Case{
				Tool: "ib_send_lat", Transport: "UD", Role: TheyServe, Family: 4, Size: 9,
				Flags: []string{"-M", groupAsTold, "-g"},
			},
			"perf send-lat -d xr0 -x 1 -n 50 -F -s 9 -u " + usual + " -c UD -M " + groupAsTold +
				" -g 192.0.2.2",
			"exec agent member eth0 239.255.185.15 ib_send_lat -d rxe0 -x 1 -n 50 -F -s 9 -u " +
				usual + " -c UD -M " + groupAsTold + " -g",
		},
		{
			Case{
				Tool: "ib_send_lat", Transport: "UC", Role: TheyServe, Family: 4, Size: 9,
				Flags: []string{exchangeByCM},
			},
			"perf send-lat -d xr0 -x 1 -n 50 -F -s 9 -u " + usual + " -c UC -z 192.0.2.2",
			"ib_send_lat -d rxe0 -x 1 -n 50 -F -s 9 -u " + usual + " -c UC -z",
		},
		{
			Case{Tool: "rdma_client", Role: TheyServe, Family: 4},
			"rdma-client -d xr0 -s 192.0.2.2", "rdma_server -s 192.0.2.2",
		},
		{
			Case{Tool: "rdma_client", Role: WeServe, Family: 6},
			"rdma-server -d xr0 -s 2001:db8::1 -v", "rdma_client -s 2001:db8::1",
		},
		{
			Case{Tool: "rping", Role: WeServe, Family: 6, Size: 60000},
			"rping -d xr0 -s -a 2001:db8::1 -V -v -S 60000 -C 20",
			"rping -c -a 2001:db8::1 -V -v -S 60000 -C 20",
		},
	} {
		our, their := ToolOf(c.Tool).Lines(c.Case)
		if strings.Join(our, " ") != c.our || their != c.their {
			t.Errorf("%s:\n%s\n%s", c.Name(), strings.Join(our, " "), their)
		}
	}
	// Between two VMs the one in our place does what we would.
	serve, call := ToolOf("rping").Reference(Case{
		Tool: "rping", Role: WeServe, CM: true, Family: 4, Size: 9, Trace: true,
	})
	if serve != "rping -s -a 192.0.2.1 -V -v -S 9 -C 5" ||
		call != "rping -c -a 192.0.2.1 -V -v -S 9 -C 5" {
		t.Errorf("reference:\n%s\n%s", serve, call)
	}
}

// TestAckTimeout: nobody gives up sooner than after half a second, but where somebody waits
// for it after a loss.
func TestAckTimeout(t *testing.T) {
	for fault, least := range map[Fault]int{NoFault: 17, Loss: 14} {
		if got := ackTimeout(Case{Fault: fault}); got < least || got > maxAckTimeout {
			t.Errorf("%q: %d", fault, got)
		}
	}
	if got := ackTimeout(Case{Trace: true}); got != 17 {
		t.Errorf("in a trace %d, and rdma_cm says 17", got)
	}
}

// TestSecondTry: a case that was tried more than once says so, whatever came of it.
func TestSecondTry(t *testing.T) {
	first := Outcome{Verdict: Failed, Reason: "retry counter exceeded"}
	for _, v := range []Verdict{Passed, Failed} {
		o := Outcome{Verdict: v}.After(first, 2)
		if o.First != first.Reason ||
			!strings.HasSuffix(o.Line(), " at try 2, the first one: retry counter exceeded") {
			t.Errorf("%q, %q", o.First, o.Line())
		}
	}
	if strings.Contains(first.Line(), "at try") {
		t.Error(first.Line())
	}
}

// TestTheirLack: perftest has rdma_cm over IPv4 alone, and nothing else is excused.
func TestTheirLack(t *testing.T) {
	for _, c := range Plan() {
		lack := ToolOf(c.Tool).TheirLack(c)
		if want := c.CM && c.Family == 6 && strings.HasPrefix(c.Tool, "ib_"); want != (lack != "") {
			t.Errorf("%s: %q", c.Name(), lack)
		}
	}
}

// TestPlanFails: the plan has each way to fail, in both roles where both can, and many queue pairs
// in both directions with a fault and without.
func TestPlanFails(t *testing.T) {
	crowd := []string{"-q", "16", "-b"}
	for name, has := range map[string]func(c *Case) bool{
		"larger messages":      func(c *Case) bool { return c.Fault == Larger },
		"retries that run out": func(c *Case) bool { return c.Fault == Cut },
		"many QPs, retries run out": func(c *Case) bool {
			return c.Fault == Cut && slices.Equal(c.Flags, crowd)
		},
		"many QPs, nothing is amiss": func(c *Case) bool {
			return c.Fault == NoFault && slices.Equal(c.Flags, crowd)
		},
	} {
		for _, role := range roles {
			in := func(c Case) bool { return c.Role == role && has(&c) }
			if !slices.ContainsFunc(Plan(), in) {
				t.Errorf("%s: no case with role %v", name, role)
			}
		}
	}
	if !slices.ContainsFunc(Plan(), func(c Case) bool { return c.Fault == Fewer }) {
		t.Error("no case of fewer messages")
	}
}
