package stat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/control"
	"xroce/engine/pager"
)

// answer is what process 9 says of a device at a time.
func answer(
	at time.Time, name string, sent, icrc, posted uint64, sqPSN uint32,
) control.Answer {
	return control.Answer{
		PID: 9, Comm: "prog", At: at,
		Devices: []engine.Resources{{
			Device: name, Total: engine.ResourceCount{QP: 2},
			QPs: []engine.QPRow{
				{LQPN: 17, Type: "UD", State: "RTS"},
				{LQPN: 18, RQPN: 19, Type: "RC", State: "RTS", SQPSN: sqPSN, RQPSN: 5},
			},
		}},
		Counters: [][]engine.Counter{{
			{Name: "sent_pkts", Value: sent},
			{Name: "drop_bad_icrc", Value: icrc},
			{Name: "out_of_buffer"},
			{Name: "sq_posted", Value: posted},
		}},
	}
}

// TestSince: rates of what moved, drops together, PSNs across their end.
func TestSince(t *testing.T) {
	at := time.Unix(100, 0)
	gone := answer(at, "eth1", 1, 1, 1, 1)
	before := NewSample([]control.Answer{answer(at, "eth0", 100, 0, 3, 0xffffff), gone}, "")
	later := at.Add(2 * time.Second)
	now := NewSample([]control.Answer{
		answer(later, "eth0", 300, 4, 9, 19), answer(later, "eth7", 1, 1, 1, 1),
	}, "")
	changes := now.Since(&before)
	if len(changes) != 1 {
		t.Fatalf("%+v", changes)
	}
	c := changes[0]
	if c.Rates["sent_pkts"] != 100 || c.Rates["drop_bad_icrc"] != 2 || c.Drops != 2 ||
		len(c.Rates) != 2 || c.QPs[0].LQPN != 18 || c.QPs[0].SQRate != 10 || c.QPs[0].RQRate != 0 {
		t.Errorf("%+v", c)
	}
	again := NewSample([]control.Answer{answer(at.Add(4*time.Second), "eth0", 5, 0, 0, 7)}, "")
	if c := again.Since(&now)[0]; len(c.Rates) != 0 || c.QPs[0].SQRate != 0 {
		t.Errorf("counters that went back: %+v", c)
	}
	if s := NewSample([]control.Answer{gone}, "eth0"); len(s.Devices) != 0 {
		t.Errorf("another name: %+v", s)
	}
}

// TestSinceOfEachProcess: one that stalls has an interval of its own, and so have those that were
// asked before it and after it.
func TestSinceOfEachProcess(t *testing.T) {
	sample := func(quick, slow time.Duration, sent uint64) Sample {
		answers := []control.Answer{
			answer(time.Unix(100, 0).Add(quick), "eth0", sent, 0, 0, 1),
			answer(time.Unix(100, 0).Add(slow), "eth0", sent, 0, 0, 1),
		}
		answers[1].PID = 10
		return NewSample(answers, "")
	}
	before := sample(0, 5*time.Second, 1000)
	now := sample(10*time.Second, 10*time.Second, 2000)
	changes := now.Since(&before)
	if len(changes) != 2 || changes[0].Seconds != 10 || changes[0].Rates["sent_pkts"] != 100 ||
		changes[1].Seconds != 5 || changes[1].Rates["sent_pkts"] != 200 {
		t.Errorf("%+v", changes)
	}
	if again := now.Since(&now); len(again) != 0 {
		t.Errorf("in no time: %+v", again)
	}
}

// TestCounterSaidTwice: what a program says twice is told once.
func TestCounterSaidTwice(t *testing.T) {
	a := answer(time.Unix(100, 0), "eth0", 100, 0, 3, 1)
	for range 100 {
		a.Counters[0] = append(a.Counters[0], a.Counters[0][0])
	}
	s := NewSample([]control.Answer{a}, "")
	var b strings.Builder
	s.Devices[0].AppendTable(&b, true)
	if n := strings.Count(b.String(), a.Counters[0][0].Name+" "); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, b.String())
	}
}

// TestQueuePairs: what each counts, on lines that are not too long, and as rates. A program that
// does not know how shows nothing more.
func TestQueuePairs(t *testing.T) {
	at := time.Unix(100, 0)
	first := answer(at, "eth0", 100, 0, 3, 1)
	second := answer(at.Add(2*time.Second), "eth0", 300, 4, 9, 11)
	first.Devices[0].QPs[1].Counters = map[string]uint64{"sent_pkts": 60}
	second.Devices[0].QPs[1].Counters = map[string]uint64{
		"sent_pkts": 160, "out_of_buffer": 123456789012345678, "unknown": 1,
		"drop_bad_icrc": 123456789012345678, "sq_posted": 123456789012345678,
	}
	before := NewSample([]control.Answer{first}, "")
	now := NewSample([]control.Answer{second}, "")
	var b strings.Builder
	now.Devices[0].AppendTable(&b, false)
	want := ` recvs 0
     sent_pkts 160 drop_bad_icrc 123456789012345678 out_of_buffer 123456789012345678
     sq_posted 123456789012345678
`
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s", b.String())
	}
	c := now.Since(&before)[0]
	b.Reset()
	c.AppendTable(&b)
	if !strings.Contains(b.String(), "\n     sent_pkts 50 drop_bad_icrc 6172") {
		t.Errorf("%s", b.String())
	}
	if q := c.QPs[0]; q.Rates["sent_pkts"] != 50 || len(c.QPs[1].Rates) > 0 {
		t.Errorf("%+v", c.QPs)
	}
}

// TestRegions: those with on-demand paging are shown with what was counted, and no others.
func TestRegions(t *testing.T) {
	a := answer(time.Unix(1, 0), "eth0", 0, 0, 0, 0)
	a.Devices[0].QPs = nil
	a.Devices[0].MRs = []engine.MRRow{{MRN: 1, Len: 4096}, {MRN: 2, Len: 8192, ODP: &pager.Stats{
		PageFaults: 3, PageFaultsHandled: 2, PageInvalidations: 4, PageInvalidationsHandled: 1,
		PagePrefetch: 5, PageFaultWait: time.Millisecond,
	}}}
	s := NewSample([]control.Answer{a}, "")
	var b strings.Builder
	s.Devices[0].AppendTable(&b, false)
	const want = "eth0: pid 9 comm prog qp 2 mr 0 cq 0\n" +
		"  mr 2 mrlen 8192\n" +
		"     page_faults 3 page_faults_handled 2 page_invalidations 4 " +
		"page_invalidations_handled 1\n" +
		"     page_prefetch 5 page_fault_wait_ns 1000000\n"
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	j, err := json.Marshal(s.Devices[0].MRs)
	if want := `"page_fault_wait_ns":1000000}`; err != nil || !strings.Contains(string(j), want) {
		t.Errorf("%s, %v", j, err)
	}
}

// TestTables: what is shown, and that a screen has no more lines than there are.
func TestTables(t *testing.T) {
	at := time.Unix(100, 0)
	before := NewSample([]control.Answer{answer(at, "eth0", 100, 0, 3, 1)}, "")
	now := NewSample([]control.Answer{answer(at.Add(time.Second), "eth0", 300, 4, 9, 11)}, "")
	var b strings.Builder
	now.Devices[0].AppendTable(&b, false)
	want := `eth0: pid 9 comm prog qp 2 mr 0 cq 0
  sent_pkts                  300
  drop_bad_icrc              4
  sq_posted                  9
  qp 0x000011 UD RTS peer 0x000000 sq-psn 0x000000 rq-psn 0x000000 sends 0 recvs 0
  qp 0x000012 RC RTS peer 0x000013 sq-psn 0x00000b rq-psn 0x000005 sends 0 recvs 0
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	changes := now.Since(&before)
	b.Reset()
	changes[0].AppendTable(&b)
	want = `eth0: pid 9 comm prog, per second
  sent_pkts                  200
  drop_bad_icrc              4
  qp 0x000012 RC RTS peer 0x000013 sq-psn 10 rq-psn 0
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	for lines := range 10 {
		if n := strings.Count(Screen(changes, lines), "\n"); n > max(lines, 3) {
			t.Errorf("%d lines, of %d", n, lines)
		}
	}
	screen := Screen(changes, 24)
	for _, want := range []string{"drop_bad_icrc              4/s", "0x000012   0x000013 RC"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
}
