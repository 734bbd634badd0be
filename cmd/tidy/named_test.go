package tidy

import (
	"slices"
	"testing"
)

// TestDocumentsNameWhatIs: the files, packages and tests that the documents name exist, so
// do the Go files that comments name, and docs/architecture.md names every package.
func TestDocumentsNameWhatIs(t *testing.T) {
	tree := files(t)
	x := newIndex(tree.files, tree.names)
	documented := 0
	for _, s := range tree.files {
		for _, finding := range (rule{check: x.wrongComments}).findings(s) {
			t.Error(finding)
		}
		if !documents.MatchString(s.path) {
			continue
		}
		documented++
		for _, check := range []func(*source, report){x.wrongPaths, x.wrongTests} {
			for _, finding := range (rule{check: check}).findings(s) {
				t.Error(finding)
			}
		}
		if s.path == "docs/architecture.md" {
			for _, finding := range unnamedPackages(s, tree.files) {
				t.Error(finding)
			}
		}
	}
	if documented < 8 {
		t.Errorf("%d documents were read", documented)
	}
}

func TestWrongNamesCanFail(t *testing.T) {
	names := []string{
		"README.md", "roce/mem/keys.go", "roce/mem/layout.go", "roce/qp.go",
		"roce/qp_test.go", "bpf/xdp.c", "docs/wire.md",
	}
	s, err := newSource("roce/qp_test.go", []byte("package p\n\nfunc TestSim() {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	x := newIndex([]*source{s}, names)
	for _, tc := range []struct {
		text string
		want int
	}{
		{"`roce/qp.go`, `roce/`, `roce/mem.Keys`, `roce/mem/l*.go`, `docs/wire.md`\n", 0},
		{"`roce/mem` has `keys.go`.\n", 0},
		{"`not_roce`, `asavie/xdp`, `/run/x`, `roce.QP`, `log/slog`, `_other.go`, `a b/c.go`\n", 0},
		{"`go test -run TestSim ./roce`, `go test ./...`, `go test -run X ./PACKAGE`\n", 0},
		{"```\nroce/gone.go `roce/gone`\n```\n", 0},
		{"`roce/gone.go`, `roce/gone`, `roce/gone.QP`, `docs/gone.md`, `roce/g*.go`\n", 5},
		{"`roce/handle\n`\n", 1},
		{"an open ` here\n\n`roce/gone.go`\n", 1},
		{"`keys.go` of `roce`\n", 1},
		{"`roce/mem`\n\n## Other\n\n`keys.go`\n", 1},
		{"`TestSim`, `TestS`, `Testing`, TestGone\n", 0},
		{"| `TestGone` | `FuzzGone`, `TestSimX` |\n", 3},
		{"`go test -run TestGone ./roce`, `go test -run TestSim ./gone`\n", 2},
		{"`go test -run 'TestGone/x' ./...`, `go test ./roce/mem`\n", 2},
		{"```\ngo test -fuzz FuzzGone ./roce\n```\n", 1},
	} {
		s, err := newSource("docs/a.md", []byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		paths, tests := rule{check: x.wrongPaths}, rule{check: x.wrongTests}
		got := slices.Concat(paths.findings(s), tests.findings(s))
		if len(got) != tc.want {
			t.Errorf("%d findings %q, want %d in:\n%s", len(got), got, tc.want, tc.text)
		}
	}
}

func TestUnnamedPackagesCanFail(t *testing.T) {
	parse := func(path, text string) *source {
		s, err := newSource(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	code := []*source{
		parse("roce/a.go", "package p\n"), parse("roce/mem/a.go", "package p\n"),
		parse("roce/mem/b.go", "package p\n"), parse("roce/t/a_test.go", "package p\n"),
	}
	if got := unnamedPackages(parse("docs/a.md", "`roce/`, roce/mem.\n"), code); len(got) != 0 {
		t.Errorf("unnamedPackages = %q, want none", got)
	}
	if got := unnamedPackages(parse("docs/a.md", "`roce/memory`, b/roce\n"), code); len(got) != 2 {
		t.Errorf("unnamedPackages = %q, want both", got)
	}
}

func TestWrongCommentsCanFail(t *testing.T) {
	x := newIndex(nil, []string{"roce/qp.go", "roce/mem/keys.go"})
	for text, want := range map[string]int{
		"// See qp.go, and roce/mem/keys.go.": 0, "// Go on; x.good is none.": 0,
		"// See keys.go.": 1, "// mem/keys.go\n// has more, gone.go not.": 2,
	} {
		s, err := newSource("roce/a.go", []byte(text+"\npackage p\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := (rule{check: x.wrongComments}).findings(s); len(got) != want {
			t.Errorf("%d findings %q, want %d in:\n%s", len(got), got, want, text)
		}
	}
}
