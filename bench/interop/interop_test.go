package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range plan() {
		name := c.Name()
		if seen[name] {
			t.Errorf("two cases are called %s", name)
		}
		seen[name] = true
		tool := toolOf(c.Tool)
		if tool == nil {
			t.Errorf("%s: no such tool", name)
			continue
		}
		our, their := tool.lines(c)
		host := map[int]string{4: "192.0.2.", 6: "2001:db8::"}[c.Family]
		if c.CM && !strings.Contains(strings.Join(our, " ")+their, host) {
			t.Errorf("%s has no address of its family: %v, %s", name, our, their)
		}
		if c.Role == theyServe && tool.server != "" && !strings.HasPrefix(their, tool.server+" ") {
			t.Errorf("%s: their server is %s", name, their)
		}
	}
}

// Both programs of a case must be told the same.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		Case
		our, their string
	}{
		{
			Case{Tool: "ibv_ud_pingpong", Role: theyServe, MTU: 1024, Family: 6, Size: 7},
			"pingpong -d xr0 -g 2 -c -s 7 -n 200 --type ud 192.0.2.2",
			"ibv_ud_pingpong -d rxe0 -g 2 -c -s 7 -n 200",
		},
		{
			Case{
				Tool: "ib_write_bw", Role: weServe, Transport: "RC", CM: true, Family: 6,
				Size: 1 << 20,
			},
			"perf write-bw -d xr0 -x 2 -n 10 -F -s 1048576 -u 17 -R -v",
			"ib_write_bw -d rxe0 -x 2 -n 10 -F -s 1048576 -u 17 -R 2001:db8::1",
		},
		{
			Case{Tool: "rdma_client", Role: theyServe, Family: 4},
			"rdma-client -d xr0 -s 192.0.2.2", "rdma_server -s 192.0.2.2",
		},
		{
			Case{Tool: "rdma_client", Role: weServe, Family: 6},
			"rdma-server -d xr0 -s 2001:db8::1 -v", "rdma_client -s 2001:db8::1",
		},
		{
			Case{Tool: "rping", Role: weServe, Family: 6, Size: 60000},
			"rping -d xr0 -s -a 2001:db8::1 -V -v -S 60000 -C 20",
			"rping -c -a 2001:db8::1 -V -v -S 60000 -C 20",
		},
	} {
		our, their := toolOf(c.Tool).lines(c.Case)
		if strings.Join(our, " ") != c.our || their != c.their {
			t.Errorf("%s:\n%s\n%s", c.Name(), strings.Join(our, " "), their)
		}
	}
	// Between two VMs the one in our place does what we would.
	serve, call := toolOf("rping").reference(Case{
		Tool: "rping", Role: weServe, CM: true, Family: 4, Size: 9, Trace: true,
	})
	if serve != "rping -s -a 192.0.2.1 -V -v -S 9 -C 5" ||
		call != "rping -c -a 192.0.2.1 -V -v -S 9 -C 5" {
		t.Errorf("reference:\n%s\n%s", serve, call)
	}
}

// The tables in the document are those of this plan: what is in it was run.
func TestDocumentHasThePlan(t *testing.T) {
	text, err := os.ReadFile("../../" + documentFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range explained {
		// One that a run did not meet is not there. What a run met follows.
		flat := strings.Join(strings.Fields(string(text)), " ")
		if strings.Contains(flat, e.name()) && !strings.Contains(flat, e.item()) {
			t.Errorf("%s does not explain %s as this program does", documentFile, e.what)
		}
	}
	outcomes := make([]Outcome, 0, len(plan()))
	for _, c := range plan() {
		outcomes = append(outcomes, Outcome{Case: c, Verdict: passed})
	}
	for _, table := range []struct {
		text string
		keys int // cells that say what a row is about
	}{{matrix(outcomes), 3}, {faultTable(outcomes), 3}, {traceTable(outcomes), 2}} {
		for line := range strings.Lines(table.text) {
			cells := strings.Split(line, "|")
			if len(cells) <= table.keys || strings.HasPrefix(line, "|-") {
				continue
			}
			row := strings.Join(cells[:table.keys+1], "|") + "|"
			if !strings.Contains(string(text), "\n"+row) {
				t.Errorf("%s has no row %s: run --update-docs", documentFile, row)
			}
		}
	}
}

func TestReplacePart(t *testing.T) {
	text := "a\n<!-- x: written by go run ./bench/interop --update-docs -->\nold\n" +
		"<!-- end of x -->\nb\n"
	got, err := replacePart(text, "x", "new\n")
	if err != nil || got != strings.Replace(text, "old", "new", 1) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := replacePart(text, "y", ""); err == nil {
		t.Error("a part that is not there was replaced")
	}
}

func TestCell(t *testing.T) {
	var c cell
	for _, step := range []struct {
		verdict Verdict
		want    string
	}{{skipped, "-"}, {passed, "1/1"}, {failed, "1/2"}, {passed, "2/3"}} {
		if c.add(step.verdict); c.String() != step.want {
			t.Errorf("%s, not %s", c, step.want)
		}
	}
}

func TestReasons(t *testing.T) {
	outcomes := []Outcome{
		{Verdict: skipped, Reason: "two"},
		{Verdict: passed},
		{Verdict: skipped, Reason: "one"},
		{Verdict: failed, Reason: "three"},
		{Verdict: skipped, Reason: "two"},
	}
	if got := reasons(outcomes); got != "\nSkipped:\n\n* 2: two\n* 1: one\n" {
		t.Errorf("%q", got)
	}
	if got := reasons(outcomes[1:2]); got != "" {
		t.Errorf("%q", got)
	}
}

func TestMalformed(t *testing.T) {
	l := &lab{firsts: []first{{1, "one"}, {3, "two"}}}
	bad, n := l.malformed("1 eth:ethertype:ip:udp:infiniband\n" +
		"2 eth:ethertype:ip:udp:data\n" +
		"3 eth:ethertype:ipv6:udp:infiniband:data\n" +
		"4 eth:ethertype:ipv6:udp:infiniband:_ws.malformed Malformed\n")
	if n != 4 || len(bad) != 2 || !strings.HasSuffix(bad[0], "of one") ||
		!strings.HasSuffix(bad[1], "of two") {
		t.Errorf("%d, %q", n, bad)
	}
}

// shell makes an end of a program, for finish.
func shell(t *testing.T, command string) end {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p, err := start(exec.CommandContext(ctx, "sh", "-c", "exec "+command))
	if err != nil {
		t.Fatal(err)
	}
	return end{name: command, done: p.done, output: p.output, status: p.wait, stop: cancel}
}

func TestFinish(t *testing.T) {
	if wrong := finish(t.Context(), [2]end{shell(t, "true"), shell(t, "true")}); wrong != "" {
		t.Error(wrong)
	}
	// The one whose partner failed is stopped, and the failure is what is told.
	for _, ends := range [][2]end{
		{shell(t, "false"), shell(t, "sleep 1000")}, {shell(t, "sleep 1000"), shell(t, "false")},
	} {
		if wrong := finish(t.Context(), ends); wrong != "false ended with status 1" {
			t.Error(wrong)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	ends := [2]end{shell(t, "sleep 1000"), shell(t, "sleep 1000")}
	if wrong := finish(ctx, ends); wrong != "not done in time" {
		t.Error(wrong)
	}
}

func TestAwaitOutput(t *testing.T) {
	p, err := start(exec.CommandContext(t.Context(), "sh", "-c", "echo listening; exec cat"))
	if err != nil {
		t.Fatal(err)
	}
	p.wait() // its input is empty
	has := func(word string) func(string) bool {
		return func(s string) bool { return strings.Contains(s, word) }
	}
	if !p.await(t.Context(), has("listening")) || p.await(t.Context(), has("else")) {
		t.Error(p.output())
	}
}

// TestSecondTry: a case that was tried twice says so, whatever came of it.
func TestSecondTry(t *testing.T) {
	first := Outcome{Verdict: failed, Reason: "retry counter exceeded"}
	for _, v := range []Verdict{passed, failed} {
		o := Outcome{Verdict: v}.after(first)
		if o.First != first.Reason || !strings.HasSuffix(o.line(), "at the second try") {
			t.Errorf("%q, %q", o.First, o.line())
		}
	}
	if strings.Contains(first.line(), "second") {
		t.Error(first.line())
	}
}

// TestTheirLack: perftest has rdma_cm over IPv4 alone, and nothing else is excused.
func TestTheirLack(t *testing.T) {
	for _, c := range plan() {
		lack := toolOf(c.Tool).theirLack(c)
		if want := c.CM && c.Family == 6 && strings.HasPrefix(c.Tool, "ib_"); want != (lack != "") {
			t.Errorf("%s: %q", c.Name(), lack)
		}
	}
}
