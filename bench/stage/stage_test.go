package stage

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// open builds a stage, or skips where that is not possible.
func open(t *testing.T, o Options) *Stage {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("XROCE_ROOT_TESTS") == "1" {
			t.Fatal("XROCE_ROOT_TESTS is set, but this is not root")
		}
		t.Skip("SKIPPED: needs root for namespaces")
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStage(t *testing.T) {
	s := open(t, Options{MTU: 4200, Threaded: true})
	for _, side := range []Side{A, B} {
		link, err := s.Command(t.Context(), side, "ip", "-o", "link", "show",
			"dev", s.Interface(side)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, link)
		}
		for _, want := range []string{"mtu 4200", "qdisc pfifo", "LOWER_UP", s.MAC(side).String()} {
			if !strings.Contains(string(link), want) {
				t.Errorf("side %v has no %q: %s", side, want, link)
			}
		}
		// The neighbour is known: with everything redirected nobody could ask.
		neigh, err := s.Command(t.Context(), side, "ip", "neigh", "show").Output()
		want := s.Address(B-side).String() + " dev " + s.Interface(side) + " lladdr " +
			s.MAC(B-side).String() + " PERMANENT"
		if err != nil || !strings.Contains(string(neigh), want) {
			t.Errorf("side %v: %v, neighbours %q, want %q", side, err, neigh, want)
		}
		mask, err := s.Command(t.Context(), side, "sh", "-c",
			"grep Cpus_allowed_list /proc/self/status").Output()
		if err != nil || strings.Fields(string(mask))[1] != strconv.Itoa(s.Settings().CPUs[side]) {
			t.Errorf("side %v runs on %q, want %d (%v)", side, mask, s.Settings().CPUs[side], err)
		}
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Errorf("Settle without a program: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, side := range []Side{A, B} {
		if _, err := os.Stat("/run/netns/" + s.namespace(side)); !os.IsNotExist(err) {
			t.Errorf("side %v: namespace after Close: %v", side, err)
		}
	}
}

func TestStagesHaveTheirOwnNames(t *testing.T) {
	a, b := open(t, Options{MTU: 1500}), open(t, Options{MTU: 1500})
	if a.Interface(A) == b.Interface(A) || a.Interface(A) == a.Interface(B) {
		t.Errorf("interfaces %s, %s and %s", a.Interface(A), a.Interface(B), b.Interface(A))
	}
	if n := len(a.Interface(A)); n > 15 {
		t.Errorf("%s has %d characters, Linux takes 15", a.Interface(A), n)
	}
}

func TestSettingsSayWhichNAPI(t *testing.T) {
	threaded, softirq := &Stage{options: Options{Threaded: true}}, &Stage{}
	a, b := threaded.Settings().NAPI, softirq.Settings().NAPI
	if a == b || !strings.Contains(a, "nice") {
		t.Errorf("threaded %q, not threaded %q", a, b)
	}
	even := &Stage{options: Options{Threaded: true, Even: true}}
	if c := even.Settings().NAPI; c == a || !strings.Contains(c, "nice 0") {
		t.Errorf("even %q, threaded %q", c, a)
	}
}

func TestPinThreadsWantsOne(t *testing.T) {
	if err := pinThreads("no-such-interface", 0, 0); err == nil {
		t.Error("a NAPI thread of no interface was pinned")
	}
}
