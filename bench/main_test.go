package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"xroce/bench/machine"
	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
	"xroce/roce/counter"
)

// TestMain lets the test binary be a worker, as the harness under test starts
// itself again to measure.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(runWorker(os.Args[2:]))
	}
	dir, err := os.MkdirTemp("", "xroce-bench-test-")
	if err != nil {
		panic(err)
	}
	inC = sync.OnceValues(func() (peers, error) { return buildPeers(context.Background(), dir) })
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func TestParseFlags(t *testing.T) {
	tests := []struct {
		args []string
		want flags
	}{
		{nil, flags{pairs: 7, duration: time.Second, out: "bench/results"}},
		{
			[]string{"--full", "--pairs", "8", "--duration", "2s"},
			flags{full: true, pairs: 8, duration: 2 * time.Second, out: "bench/results"},
		},
		{[]string{"--quick"}, flags{quick: true, pairs: 2, duration: 200 * time.Millisecond}},
		{
			[]string{"--quick", "--pairs", "5", "--out", "x"},
			flags{quick: true, pairs: 5, duration: 200 * time.Millisecond, out: "x"},
		},
		{
			[]string{"--only", "raw", "--duration", "1s", "--json"},
			flags{only: "raw", json: true, pairs: 7, duration: time.Second, out: "bench/results"},
		},
	}
	for _, tt := range tests {
		got, err := parseFlags(tt.args)
		if err != nil || got != tt.want {
			t.Errorf("parseFlags(%q) = %+v, %v, want %+v", tt.args, got, err, tt.want)
		}
	}
	for _, args := range [][]string{{"stray"}, {"--pairs", "-1"}, {"--duration", "-1s"}} {
		if f, err := parseFlags(args); err == nil {
			t.Errorf("parseFlags(%q) = %+v, want an error", args, f)
		}
	}
}

func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range allCases() {
		if seen[c.name] {
			t.Errorf("two cases are called %s", c.name)
		}
		seen[c.name] = true
		if len(c.variants) < 2 || c.reference == "" && c.variants[0].name != ours.String() {
			t.Errorf("%s: the first of at least two variants must be ours", c.name)
		}
		names := []string{}
		for _, v := range c.variants {
			if slices.Contains(names, v.name) {
				t.Errorf("%s: two variants are called %s", c.name, v.name)
			}
			names = append(names, v.name)
		}
		for what, name := range map[string]string{"control": c.control, "reference": c.reference} {
			if (name != "" || what == "control") && !slices.Contains(names, name) {
				t.Errorf("%s: the %s %q is none of %q", c.name, what, name, names)
			}
		}
		// 14 bytes of Ethernet header are not part of the MTU.
		if c.sockets.Frame > c.stage.MTU+14 {
			t.Errorf("%s: frames of %d bytes for MTU %d", c.name, c.sockets.Frame, c.stage.MTU)
		}
	}
}

// TestGoalsAreMeasured holds the goals to the names of cases and variants.
func TestGoalsAreMeasured(t *testing.T) {
	names := map[string][]string{}
	for _, c := range allCases() {
		for _, v := range c.variants {
			names[c.name] = append(names[c.name], v.name)
		}
	}
	for _, g := range result.Goals() {
		if g.Case == "" {
			continue // of all cases
		}
		for _, name := range []string{g.Variant, g.Peer} {
			if name != "" && !slices.Contains(names[g.Case], name) {
				t.Errorf("goal %q: there is no %q in %q", g.Text, name, g.Case)
			}
		}
	}
}

// TestUsualRunIsShort keeps make bench within what people wait for.
func TestUsualRunIsShort(t *testing.T) {
	f, err := parseFlags(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{pairs: f.pairs, warmup: f.duration / 4, window: f.duration}
	if d := b.plan(choose(allCases(), "", false)).time(); d > 25*time.Minute {
		t.Errorf("the usual run takes %v", d)
	}
}

func TestChoose(t *testing.T) {
	cases := []benchCase{
		{name: "raw-tx-64"}, {name: "raw-tx-1500", full: true}, {name: "send-64"},
	}
	for _, tt := range []struct {
		only string
		full bool
		want int
	}{
		{"", false, 2},
		{"", true, 3},
		{"raw", false, 2},
		{"raw-tx-64", true, 1},
		{"raw-tx-1500,send", false, 2},
		{"none", true, 0},
		{"raw,raw", false, 2},
		{",", true, 0},
	} {
		if got := choose(cases, tt.only, tt.full); len(got) != tt.want {
			t.Errorf("choose(%q, %v) keeps %d cases, want %d", tt.only, tt.full, len(got), tt.want)
		}
	}
}

func TestPlan(t *testing.T) {
	b := &bench{pairs: 5, warmup: time.Second, window: 2 * time.Second, peers: peers{
		cpeerMissing: "needs gcc",
	}}
	p := b.plan([]benchCase{
		{name: "a", variants: []variant{{}, {}, {needs: []backend{libxdp}}}},
		{name: "b", variants: []variant{{}}, maxRounds: 3},
	})
	each := 3*time.Second + idle
	if p.rows() != 13 || p.time() != 13*each || p.each() != each {
		t.Errorf("%d rows, %v, %v each, want 13 of %v", p.rows(), p.time(), p.each(), each)
	}
	var out strings.Builder
	p.print(&out)
	for _, want := range []string{"2 variants × 5 rounds, 1 skipped", "1 variants × 3", "13 rows"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plan does not say %q:\n%s", want, out.String())
		}
	}
	if plan(nil).each() != 0 {
		t.Error("nothing takes time")
	}
}

func TestCaseDocument(t *testing.T) {
	c := &benchCase{
		control: "b", reference: "c", axis: "bytes", variants: []variant{
			{name: "a", at: 0}, {name: "b", at: 7}, {name: "c", offAxis: true},
		},
	}
	got := c.document(c.variants, nil)
	want := result.Case{
		Control: "b", Reference: "c", Variants: []string{"a", "b", "c"}, Axis: "bytes",
		At: []result.Point{{Variant: "a", At: 0}, {Variant: "b", At: 7}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	alone := c.document(c.variants[:1], nil)
	if alone.Control != "a" || alone.Reference != "a" {
		t.Errorf("control %q and reference %q, of a alone", alone.Control, alone.Reference)
	}
	if none := c.document(nil, nil); none.Control != "" || none.Variants != nil {
		t.Errorf("out of no variants: %+v", none)
	}
}

func TestWith(t *testing.T) {
	p := &place{}
	run := runFunc(func(_ context.Context, p *place) (measurement, error) {
		o := worker.Options{Size: 1}
		p.tune(stage.B, &o)
		return measurement{value: float64(o.Size)}, nil
	})
	m, err := run.with(datagrams(1400)).times(8)(t.Context(), p)
	if err != nil || m.value != 8*1400 {
		t.Errorf("%v, %v, want the payload of datagrams in bits", m.value, err)
	}
}

func TestAble(t *testing.T) {
	b := &bench{peers: peers{cpeerMissing: "needs gcc"}}
	c := &benchCase{variants: []variant{
		{name: "ours", needs: []backend{ours}},
		{name: "C", needs: []backend{libxdp}},
		{name: "never", missing: "it cannot"},
	}}
	able, skips := b.able(c)
	if len(able) != 1 || able[0].name != "ours" {
		t.Errorf("able: %v", able)
	}
	want := []result.Skip{
		{Variant: "C", Reason: "needs gcc"}, {Variant: "never", Reason: "it cannot"},
	}
	if diff := cmp.Diff(want, skips); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
}

func TestFinish(t *testing.T) {
	row := result.Case{Name: "c", Variants: []string{"ours"}, Rows: []result.Row{{Variant: "ours"}}}
	broken, forbidden := errors.New("broken"), fmt.Errorf("netns: %w", unix.EPERM)
	tests := []struct {
		name     string
		cases    []result.Case
		failures []error
		want     int
	}{
		{"measured", []result.Case{row}, nil, exitOK},
		{"one failed", []result.Case{row}, []error{broken}, exitFailed},
		{"forbidden in the middle", []result.Case{row}, []error{forbidden}, exitFailed},
		{"nothing there", nil, nil, exitSkipped},
		{"nothing allowed", nil, []error{forbidden}, exitSkipped},
		{"nothing works", nil, []error{broken}, exitFailed},
	}
	for _, tt := range tests {
		out := t.TempDir()
		d := result.New(time.Now(), machine.Facts{Commit: "abc"}, 0)
		d.Cases = tt.cases
		status, err := finish(d, flags{out: out}, tt.failures)
		if status != tt.want || (status == exitOK) != (err == nil) {
			t.Errorf("%s: status %d, %v, want %d", tt.name, status, err, tt.want)
		}
		stored, _ := filepath.Glob(filepath.Join(out, "*.json"))
		if (len(stored) == 1) != (len(tt.cases) > 0) {
			t.Errorf("%s: stored %q", tt.name, stored)
		}
	}
}

func TestSilent(t *testing.T) {
	c := &result.Case{Variants: []string{"ours", "C"}, Rows: []result.Row{
		{Variant: "ours"}, {Variant: "C"}, {Variant: "C"}, {Variant: "ours", Value: 1},
	}}
	got := silent(c)
	if len(got) != 1 || !errors.Is(got[0], errNothing) || !strings.Contains(got[0].Error(), "C") {
		t.Errorf("silent: %v, want C", got)
	}
}

func TestLoss(t *testing.T) {
	for _, tt := range []struct {
		sent, arrived uint64
		want          float64
	}{{100, 100, 0}, {100, 75, 0.25}, {0, 0, 0}, {100, 101, 0}} {
		if got := loss(tt.sent, tt.arrived); got != tt.want {
			t.Errorf("loss(%d, %d) = %v, want %v", tt.sent, tt.arrived, got, tt.want)
		}
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 4, 3*time.Second)
	now := p.begin
	p.now = func() time.Time { return now }
	if p.left() != 12*time.Second {
		t.Errorf("%v left before the first row, want 12s", p.left())
	}
	now = now.Add(5 * time.Second)
	p.done(&benchCase{name: "raw-tx-64", unit: "packets/s"},
		&result.Row{Round: 1, Variant: "ours", Value: 1234, Void: "it broke"})
	if p.left() != 15*time.Second {
		t.Errorf("%v left after a row of 5s, want 15s", p.left())
	}
	for _, want := range []string{
		"[1/4]", "round 2", "1234", "it broke", "15s left",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not say %q", out.String(), want)
		}
	}
}

func TestParseIperf(t *testing.T) {
	m, err := parseIperf([]byte(`{"start":{},"end":{"sum_sent":{"retransmits":3},
		"sum_received":{"bytes":125,"seconds":2.0,"bits_per_second":500.5}}}`))
	want := measurement{value: 500.5, workers: []worker.Report{{
		Bytes: 125, Seconds: 2, Mode: "iperf3", Counters: map[string]uint64{"retransmits": 3},
	}}}
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(measurement{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", `{"error":"unable to connect"}`, `{"end":{}}`} {
		if m, err := parseIperf([]byte(text)); err == nil {
			t.Errorf("parseIperf(%s) = %+v, want an error", text, m)
		}
	}
}

// needRoot skips a test that needs root, or fails it where root is promised.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("XROCE_ROOT_TESTS") == "1" {
		t.Fatal("XROCE_ROOT_TESTS is set, but this is not root")
	}
	t.Skip("SKIPPED: needs root for namespaces and AF_XDP")
}

// needMachine skips a test that measures, which takes long, but where all tests are asked for.
func needMachine(t *testing.T) {
	t.Helper()
	needRoot(t)
	if os.Getenv("XROCE_ROOT_TESTS") != "1" {
		t.Skip("SKIPPED: measures, which takes long: make test-root")
	}
}

// TestQuickRun measures one case for real, as shortly as can be. Beside the tests of
// other packages all its rounds may be void; then it has twice as many, once.
func TestQuickRun(t *testing.T) {
	needRoot(t)
	out, pairs := "", 2
	for ; ; pairs *= 2 {
		out = t.TempDir()
		status, err := run(t.Context(), flags{
			quick: true, only: "raw-rx-64", pairs: pairs, duration: 300 * time.Millisecond,
			out: out, peers: compiled(t),
		})
		if status == exitOK {
			break
		}
		if pairs == 4 || !errors.Is(err, errNothing) {
			t.Fatalf("status %d: %v", status, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(out, "*.json"))
	if len(files) != 1 {
		t.Fatalf("stored %q, want one file", files)
	}
	d, err := result.Load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Cases) != 1 || !d.Quick {
		t.Fatalf("%d cases, quick %v", len(d.Cases), d.Quick)
	}
	c := d.Cases[0]
	eachRan(t, &c, pairs)
	if c.Settings.Driver != "veth" || c.Sockets.Frame != 64 {
		t.Errorf("%+v, %+v", c.Settings, c.Sockets)
	}
	for _, r := range c.Rows {
		if len(r.Workers) != 2 || r.Workers[0].Total < r.Workers[1].Total {
			t.Errorf("row %+v: want a sender and a receiver, and no more received than sent", r)
		}
	}
}

// quickly runs cases as shortly as can be and returns what was stored.
func quickly(t *testing.T, only string, pairs int) *result.Document {
	t.Helper()
	out := t.TempDir()
	status, err := run(t.Context(), flags{
		quick: true, only: only, pairs: pairs, duration: 200 * time.Millisecond, out: out,
		peers: compiled(t),
	})
	if status != exitOK {
		t.Fatalf("status %d: %v", status, err)
	}
	files, _ := filepath.Glob(filepath.Join(out, "*.json"))
	if len(files) != 1 {
		t.Fatalf("stored %q, want one file", files)
	}
	d, err := result.Load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestReliableRun measures what sleeps, what is spread over queue pairs, and what
// needs no network.
func TestReliableRun(t *testing.T) {
	needMachine(t)
	for _, c := range quickly(t, "write-64,rtt-sleep,qps,packet", 1).Cases {
		for _, r := range c.Rows {
			if r.Value == 0 {
				continue // it was not scheduled, and was tried again
			}
			for end, w := range r.Workers {
				if w.Cost == nil {
					t.Errorf("%s, %s: end %d has no cost", c.Name, r.Variant, end)
				}
			}
			if len(r.Workers) > 0 && strings.HasPrefix(c.Name, "rtt") != (r.Workers[0].RTT != nil) {
				t.Errorf("%s, %s: round trips %+v", c.Name, r.Variant, r.Workers[0].RTT)
			}
		}
	}
}

// TestLossyRun loses packets. Connections over lossy links do not wait long for a peer that is not
// scheduled: those that give up are tried again, and wait longer then.
func TestLossyRun(t *testing.T) {
	needMachine(t)
	for _, c := range quickly(t, "loss-gbn-data", 1).Cases {
		lost := map[string]float64{} // in a million
		for _, p := range c.At {
			lost[p.Variant] = p.At
		}
		for _, r := range c.Rows {
			if len(r.Workers) == 0 {
				continue // it gave up
			}
			count := r.Workers[0].Counters
			dropped, sent := count[worker.DroppedOnPurpose], count[counter.SentPkts.String()]
			// Of the few packets of a sender that is starved, all may have got through.
			want := float64(sent) * lost[r.Variant] / 1e6
			if sent == 0 || want == 0 && dropped > 0 || want > 20 && dropped == 0 {
				t.Errorf("%s: %d of %d packets dropped", r.Variant, dropped, sent)
			}
		}
	}
}

// TestInterrupt ends a run in its middle: nothing may be left behind.
func TestInterrupt(t *testing.T) {
	needRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(time.Second, cancel)
	status, err := run(ctx, flags{
		only: "raw-tx-64", pairs: 100, duration: 5 * time.Second, out: t.TempDir(),
	})
	if status != exitFailed || err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("status %d, %v, want an interrupted run", status, err)
	}
	names, _ := filepath.Glob("/run/netns/xroce-*")
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "xroce-"+strconv.Itoa(os.Getpid())+"-") {
			t.Errorf("%s is left behind", name)
		}
	}
}
