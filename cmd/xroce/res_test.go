package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xroce/engine"
	"xroce/engine/control"
	"xroce/engine/pager"
	"xroce/xsk/vethpair"
)

// TestResOfThisProcess asks a server of a simulated network for everything.
func TestResOfThisProcess(t *testing.T) {
	b, _ := simBench(t)
	b.runtime = filepath.Join(t.TempDir(), "xroce")
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", t.TempDir())
	server.listenPort(t)
	pid := os.Getpid()
	i := b.run(t, "res")
	want := fmt.Sprintf("xr1: pd 1 cq 2 qp 1 mr 1 mw 0 srq 0 pid %d comm ", pid)
	if i.code != exitOK || i.stderr != "" || !strings.HasPrefix(i.stdout, want) {
		t.Errorf("code %d, %q, %q", i.code, i.stdout, i.stderr)
	}
	i = b.run(t, "res", "--json")
	var answers []control.Answer
	if err := json.Unmarshal([]byte(i.stdout), &answers); err != nil || len(answers) != 1 ||
		answers[0].PID != pid || answers[0].Devices[0].Device != "xr1" {
		t.Errorf("%v: %s", err, i.stdout)
	}
	server.cancel()
	server.wait(t)
	if i = b.run(t, "res"); i.code != exitOK || i.stdout != "" {
		t.Errorf("after its end: code %d, %q", i.code, i.stdout)
	}
	if i = b.run(t, "res", "--json"); strings.TrimSpace(i.stdout) != "[]" {
		t.Errorf("after its end: %s", i.stdout)
	}
	i = b.run(t, "res", "--pid", fmt.Sprint(pid))
	if i.code != exitFailure || !strings.Contains(i.stderr, "control socket") {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
}

// TestResUsage: what is wrong with a command line is said.
func TestResUsage(t *testing.T) {
	for _, args := range []string{
		"res cm_id", "res show pd mr", "res --pid -1", "res --rows 0", "res --rows 65537",
		"res show bogus",
	} {
		i := bench{machine: goodMachine(), runtime: t.TempDir()}.run(t, strings.Fields(args)...)
		if i.code != exitUsage {
			t.Errorf("%s: code %d, %s", args, i.code, i.stderr)
		}
	}
}

// TestResLines are the rows of each kind, with and without keys.
func TestResLines(t *testing.T) {
	lkey, addr := uint32(0x1234ab), uint64(0x7f0000001000)
	r := engine.Resources{
		Device: "eth0", Total: engine.ResourceCount{PD: 1, MR: 3, MW: 2, CQ: 1, QP: 2, SRQ: 1},
		PDs: []engine.PDRow{{PDN: 1, Users: 4}},
		MRs: []engine.MRRow{
			{MRN: 1, Len: 4096, Access: "LOCAL_WRITE", Valid: true, PDN: 1},
			{MRN: 2, RKey: &lkey, LKey: &lkey, IOVA: &addr, Len: 1, Access: "LOCAL_READ", PDN: 1},
			{MRN: 3, Len: 1, Access: "ON_DEMAND", Valid: true, PDN: 1, ODP: &pager.Stats{
				PageFaults: 3, PageFaultsHandled: 2, PageFaultWait: 5000,
			}},
		},
		MWs: []engine.MWRow{
			{MWN: 1, Type: 1, PDN: 1},
			{MWN: 2, Type: 2, RKey: &lkey, Bound: true, Len: 64, PDN: 1},
		},
		CQs: []engine.CQRow{{CQN: 2, CQE: 128, Users: 2}},
		QPs: []engine.QPRow{
			{
				LQPN: 17, RQPN: 18, Type: "RC", State: "RTS", RQPSN: 5, SQPSN: 6, PDN: 1,
				SendCQN: 2, RecvCQN: 2, SendQueue: 1, RecvQueue: 9, Rate: 20_000_000, Alpha: 0.75,
			},
			{LQPN: 19, Type: "UD", State: "RESET", PDN: 1, SendCQN: 2, RecvCQN: 2, SRQN: 3},
		},
		SRQs: []engine.SRQRow{{SRQN: 3, Type: "XRC", MaxWR: 128, Recvs: 7, PDN: 1, CQN: 2}},
	}
	var all strings.Builder
	for _, kind := range resKinds {
		all.WriteString(resTable(&r, kind, "pid 9 comm x"))
	}
	golden(t, "res.golden", all.String())
}

// TestResOfAHostileProcess: names that a process gives itself stay on their line.
func TestResOfAHostileProcess(t *testing.T) {
	r := engine.Resources{
		Device: "eth0\x1b[2J\n", Total: engine.ResourceCount{PD: 1, QP: 1},
		PDs: []engine.PDRow{{PDN: 1}}, QPs: []engine.QPRow{{Type: "RC\u009b", State: "\n\n"}},
	}
	for _, kind := range []string{"pd", "qp"} {
		got := resTable(&r, kind, "pid 9 comm \r\n")
		if strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\r\u009b") {
			t.Errorf("%q", got)
		}
	}
}

// TestResOfAnotherProcess: one process serves, another one shows what it has, down
// to the state and the peer of its queue pair.
func TestResOfAnotherProcess(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{MTU: 4200})
	runtime := filepath.Join(t.TempDir(), "xroce")
	// Either end waits for the other for minutes: they are processes of a busy machine.
	test := []string{"perf", "send-lat", "-d", "xr0", "-D", "1000", "-v", "-u", "22", "-p"}
	server := child(t, 0, append(test, "0")...)
	server.Env = append(server.Env, childRuntime+"="+runtime)
	stderr, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Do(vethpair.A, server.Start); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Signal(syscall.SIGINT)
	var port string
	lines := bufio.NewScanner(stderr)
	for port == "" && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "address="); ok {
			port = rest[strings.LastIndex(rest, ":")+1:]
			port = strings.Trim(strings.Fields(port)[0], `"`)
		}
	}
	if port == "" {
		t.Fatal("it does not listen: ", lines.Err())
	}
	go func() { // what it says more is of no interest
		for lines.Scan() {
		}
	}()
	client := in(vethpair.B).start(t, append(test, port, p.A.IPv4.Addr().String())...)
	show := func(args ...string) string {
		t.Helper()
		cmd := child(t, 0, append([]string{"res"}, args...)...)
		cmd.Env = append(cmd.Env, childRuntime+"="+runtime)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	var qp string
	for !strings.Contains(qp, "state RTS") {
		select {
		case <-client.done:
			t.Fatalf("the client ended with %d: %s", client.code, client.stderr)
		default:
			qp = show("show", "qp")
		}
	}
	owner := fmt.Sprintf(" pid %d comm ", server.Process.Pid)
	contains(t, qp, "link xr0/1 lqpn ", " rqpn ", " type RC state RTS ", owner)
	contains(t, show(), "xr0: pd 1 cq 2 qp 1 mr 1 mw 0 srq 0"+owner)
	mr := show("mr")
	contains(t, mr, "dev xr0 mrn 1 mrlen ", owner)
	if strings.Contains(mr, "key") || !strings.Contains(show("mr", "-v"), " rkey 0x") {
		t.Errorf("keys: %s", mr)
	}
	// A process that is killed leaves its socket; who asks next removes it.
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	sockets := func() []string {
		found, err := filepath.Glob(filepath.Join(runtime, "*.sock"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := sockets(); len(got) != 1 {
		t.Error(got)
	}
	if out := show(); out != "" {
		t.Error(out)
	}
	if got := sockets(); len(got) != 0 {
		t.Errorf("the socket of a dead process: %v", got)
	}
}
