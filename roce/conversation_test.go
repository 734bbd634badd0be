package roce_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/internal/conversation"
)

//go:generate go test -run TestConversationList -write-list .

var writeList = flag.Bool("write-list", false, "write the list in docs/testing.md anew")

// readConversations parses every file, in the order of names.
func readConversations(t *testing.T) []*conversation.File {
	t.Helper()
	names, err := filepath.Glob("testdata/conversations/*.txt")
	must(t, err)
	if len(names) == 0 {
		t.Fatal("no conversations")
	}
	var files []*conversation.File
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		f, err := conversation.Parse(filepath.Base(name), text)
		if err != nil {
			t.Error(err)
			continue
		}
		if strings.TrimSpace(f.About) == "" {
			t.Errorf("%s: no comment at the top says what it shows", name)
		}
		files = append(files, f)
	}
	return files
}

// TestConversations plays every file: with -run TestConversations/NAME.txt one.
// A file with a todo: line is known to fail, and must, in every run.
func TestConversations(t *testing.T) {
	for _, f := range readConversations(t) {
		t.Run(f.Name, func(t *testing.T) {
			for _, r := range f.Runs {
				t.Run(or(r.Name, "all"), func(t *testing.T) {
					err := r.Play()
					switch {
					case f.Todo == "" && err != nil:
						t.Error(err)
					case f.Todo != "" && err == nil:
						t.Errorf("%s works: take its todo: line out", r)
					case f.Todo != "":
						t.Logf("as expected: %v (%s)", err, f.Todo)
					}
				})
			}
		})
	}
}

// TestConversationList: docs/testing.md lists which file covers which rule.
func TestConversationList(t *testing.T) {
	const doc, begin, end = "../docs/testing.md", "<!-- conversations -->\n",
		"<!-- end of conversations -->\n"
	old, err := os.ReadFile(doc)
	must(t, err)
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", doc, begin, end)
	}
	files := readConversations(t)
	if rows := conversation.Uncovered(files); len(rows) > 0 {
		t.Errorf("no conversation covers %s", strings.Join(rows, ", "))
	}
	text := before + begin + conversation.List(files) + end + after
	if *writeList {
		must(t, os.WriteFile(doc, []byte(text), 0o644))
		return
	}
	if text != string(old) {
		t.Errorf("%s is not what the conversations say: go generate ./roce writes it anew", doc)
	}
}
