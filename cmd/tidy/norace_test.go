package tidy

import (
	"slices"
	"strings"
	"testing"
)

// TestRaceIsWhole: what `make race` leaves out has nothing to find.
func TestRaceIsWhole(t *testing.T) {
	tree := files(t)
	at := slices.IndexFunc(tree.files, func(s *source) bool { return s.path == "Makefile" })
	if at < 0 {
		t.Fatal("there is no Makefile")
	}
	for _, finding := range unraced(tree.files[at], tree.files) {
		t.Error(finding)
	}
	for _, dir := range noRace(tree.files[at]) {
		if !slices.ContainsFunc(tree.files, func(s *source) bool { return s.dir() == dir }) {
			t.Errorf("Makefile: NO_RACE has %s, which is no package", dir)
		}
	}
	// A part of a package is chosen by name, and must be all that is concurrent there.
	for _, s := range tree.files {
		if name, ok := raced[s.path]; ok && s.isTest() {
			for _, line := range s.lines() {
				if strings.HasPrefix(line, "func Test") && !strings.Contains(line, name) {
					t.Errorf("%s: %q is not called %s", s.path, line, name)
				}
			}
		}
	}
}

func TestUnracedSees(t *testing.T) {
	makefile := &source{path: "Makefile", data: []byte("NO_RACE := ./roce \\\n\t./pure\nrace:\n" +
		"\t$$test -run Goroutines ./roce || bad=1\n")}
	for body, want := range map[string]int{
		"go f()": 1, "wg.Go(f)": 1, "t.Parallel()": 1, "time.AfterFunc(1, f)": 1, "f()": 0,
	} {
		for path, counts := range map[string]bool{
			"pure/a.go": true, "pure/a_test.go": true, "other/a.go": false,
			"roce/race_test.go": false,
		} {
			s, err := newSource(path, []byte("package p\n\nfunc g() { "+body+" }\n"))
			if err != nil {
				t.Fatal(err)
			}
			expected := want
			if !counts {
				expected = 0
			}
			if path == "roce/race_test.go" && want == 0 {
				expected = 1 // an exception without need
			}
			if got := unraced(makefile, []*source{s}); len(got) != expected {
				t.Errorf("%s, %s: %q", path, body, got)
			}
		}
	}
	s, err := newSource("roce/race_test.go", []byte("package p\n\nfunc g() { go f() }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{
		"":                                      1,
		"$$test -run Goroutines ./roce":         0,
		"$$test -run 'X|Goroutines' ./y ./roce": 0,
		"$$test -run 'Goroutines|X$$' ./roce ./y/z": 0,
		"$$test -run GoroutinesOf ./roce":           1,
		"$$test -run X ./roce":                      1,
		"$$test -run Goroutines ./roce/mem":         1,
	} {
		makefile := &source{path: "Makefile", data: []byte("NO_RACE := ./roce\nrace:\n\t" + line +
			" || bad=1\n")}
		if got := unraced(makefile, []*source{s}); len(got) != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := unraced(&source{path: "Makefile"}, nil); len(got) != 1 {
		t.Errorf("without a list: %q", got)
	}
}
