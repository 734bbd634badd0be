package tidy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The root of the repository, seen from this package's directory.
const root = "../.."

// allRules is every rule that judges one file.
var allRules = slices.Concat(textRules, formRules, pureRules, importRules, timeoutRules)

// tree is the repository as git lists it: the names of all files, those of what
// is no text, and the text files among them, read and parsed once for all tests.
type tree struct {
	names    []string
	binaries []string
	files    []*source
}

var loadTree = sync.OnceValues(func() (*tree, error) {
	out, err := run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	t := &tree{names: slices.DeleteFunc(strings.Split(string(out), "\x00"),
		func(name string) bool { return name == "" })}
	slices.Sort(t.names)
	t.names = slices.Compact(t.names)
	for _, name := range t.names {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not yet committed as deleted
		}
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(data, 0) >= 0 {
			t.binaries = append(t.binaries, name) // an object file, a capture
			continue
		}
		s, err := newSource(name, data)
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, s)
	}
	return t, nil
})

// errNoGit means that there is nothing to ask which files belong to the tree.
var errNoGit = errors.New("git does not list the files of this tree")

// run runs a command at the root and returns what it printed.
func run(name string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	if err != nil && name == "git" {
		return nil, errors.Join(errNoGit, err, errors.New(stderr.String()))
	}
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	return out, nil
}

// files returns the tree, or skips the test when this is not a git checkout.
func files(t *testing.T) *tree {
	t.Helper()
	tree, err := loadTree()
	if errors.Is(err, errNoGit) {
		t.Skipf("SKIPPED, the tree was not checked: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTree(t *testing.T) {
	tree := files(t)
	for _, r := range allRules {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range tree.files {
				for _, finding := range r.findings(s) {
					t.Error(finding)
				}
			}
		})
	}
}

func TestPackagesHaveDocs(t *testing.T) {
	for _, finding := range missingDocs(files(t).files) {
		t.Error(finding)
	}
}

// TestBinariesAreWanted: what a build left behind is not in the tree. No other rule sees
// it, since there are no lines in it.
func TestBinariesAreWanted(t *testing.T) {
	for _, finding := range strayBinaries(files(t).binaries) {
		t.Error(finding)
	}
}

func TestTestdataIsUsed(t *testing.T) {
	tree := files(t)
	for _, finding := range deadTestdata(tree.files, tree.names) {
		t.Error(finding)
	}
}

// TestExceptionsExist keeps the lists of exceptions from outliving the files
// they were made for.
func TestExceptionsExist(t *testing.T) {
	tree := files(t)
	exists := func(name string) {
		if !slices.Contains(tree.names, name) {
			t.Errorf("%s is an exception to a rule but not a file", name)
		}
	}
	for name := range wideFiles {
		exists(name)
	}
	for name := range longFiles {
		exists(name)
	}
	for name := range longFuncs {
		file, _, _ := strings.Cut(name, ":")
		exists(file)
	}
	for name := range fenced {
		exists(name)
	}
	for name := range objectFiles {
		exists(name)
	}
}

// TestEditorsAgree: what editors are told about lines is what the rules hold. They read
// .editorconfig and nothing else, so it has to say it once more.
func TestEditorsAgree(t *testing.T) {
	for _, s := range files(t).files {
		if s.path != ".editorconfig" {
			continue
		}
		lines := s.lines()
		for _, want := range []string{
			fmt.Sprintf("max_line_length = %d", maxColumns),
			fmt.Sprintf("tab_width = %d", tabColumns),
		} {
			if !slices.Contains(lines, want) {
				t.Errorf(".editorconfig has no line %q", want)
			}
		}
		return
	}
	t.Error("there is no .editorconfig")
}

// TestDependencies asks the go command what each package is really built from.
func TestDependencies(t *testing.T) {
	out, err := run("go", "list", "-deps", "-json=ImportPath,Deps", "./...")
	if err != nil {
		t.Fatal(err)
	}
	var nodes []node
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var n node
		if err := dec.Decode(&n); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	ours := 0
	for _, n := range nodes {
		if _, ok := own(n.ImportPath); ok {
			ours++
		}
	}
	if ours < 2 {
		t.Fatalf("go list knows %d packages of this module", ours)
	}
	for _, finding := range climbs(nodes) {
		t.Error(finding)
	}
}
