package tidy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// documents are the files for people whose names of other things are checked.
var documents = regexp.MustCompile(`^(docs/[^/]+|README|CONTRIBUTING)\.md$`)

// A section is the part of a document below one heading.
type section struct {
	spans []span // in backquotes
	block []span // lines of blocks between ```
}

// A span is a piece of code in a document.
type span struct {
	text string
	line int
}

// backquoted matches code in backquotes, which may go on in the next line.
var backquoted = regexp.MustCompile("`[^`]+`")

// sections takes a document apart. Backquotes that are not closed end with their paragraph.
func (s *source) sections() []section {
	list := []section{{}}
	text, from := "", 1
	flush := func() {
		now := &list[len(list)-1]
		for _, at := range backquoted.FindAllStringIndex(text, -1) {
			code := strings.Join(strings.Fields(text[at[0]+1:at[1]-1]), " ")
			now.spans = append(now.spans, span{code, from + strings.Count(text[:at[0]], "\n")})
		}
		text = ""
	}
	fenced := false
	for i, line := range s.lines() {
		switch fence := strings.HasPrefix(line, "```"); {
		case fence:
			flush()
			fenced = !fenced
		case fenced:
			now := &list[len(list)-1]
			now.block = append(now.block, span{strings.TrimSpace(line), i + 1})
		case line == "":
			flush()
		default:
			if strings.HasPrefix(line, "#") {
				flush()
				list = append(list, section{})
			}
			if text == "" {
				from = i + 1
			}
			text += line + "\n"
		}
	}
	flush()
	return list
}

// An index has what a document may name: files, directories, tests.
type index struct {
	files []string
	dirs  map[string]bool
	tests map[string][]string // by directory
}

var testDecl = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)

func newIndex(files []*source, names []string) *index {
	x := &index{names, map[string]bool{}, map[string][]string{}}
	for _, name := range names {
		for dir := path.Dir(name); !x.dirs[dir]; dir = path.Dir(dir) {
			x.dirs[dir] = true
		}
	}
	for _, s := range files {
		if s.isTest() {
			for _, m := range testDecl.FindAllSubmatch(s.data, -1) {
				x.tests[s.dir()] = append(x.tests[s.dir()], string(m[1]))
			}
		}
	}
	return x
}

// has reports whether there is a file or a directory of a name, which may be a pattern.
func (x *index) has(name string) bool {
	matches := func(file string) bool {
		ok, err := path.Match(name, file)
		return ok && err == nil
	}
	return x.dirs[name] || slices.ContainsFunc(x.files, matches)
}

// pathLike matches the path of a file or a package, maybe with an identifier of it.
var pathLike = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)*/?$`)

// wrongPaths names the Go files and the directories in backquotes that do not exist. A
// file without its directory is one of a directory that the same section names.
func (x *index) wrongPaths(s *source, report report) {
	for _, sec := range s.sections() {
		dirs := []string{"."}
		var bare []span
		for _, sp := range sec.spans {
			name := strings.TrimSuffix(sp.text, "/")
			first, _, deep := strings.Cut(sp.text, "/")
			switch {
			case !pathLike.MatchString(sp.text) || strings.HasPrefix(name, "_"):
			case !deep && strings.HasSuffix(name, ".go"):
				bare = append(bare, sp)
			case !x.dirs[first] || !deep && !x.dirs[name]:
				// The path of something else, or a word.
			default:
				dir, base := path.Split(name)
				pkg, _, _ := strings.Cut(base, ".")
				switch {
				case x.dirs[name]:
					dirs = append(dirs, name)
				case x.has(name):
					dirs = append(dirs, path.Clean(dir))
				case !strings.HasSuffix(name, ".go") && x.dirs[dir+pkg]:
					dirs = append(dirs, dir+pkg)
				default:
					report(sp.line, "%s does not exist", name)
				}
			}
		}
		for _, sp := range bare {
			of := func(dir string) bool { return x.has(path.Join(dir, sp.text)) }
			if !slices.ContainsFunc(dirs, of) {
				report(sp.line, "%s is in no directory that the section names", sp.text)
			}
		}
	}
}

// goFile matches the name of a Go file in a comment, alone or as a path.
var goFile = regexp.MustCompile(`[\w./-]*\w\.go\b`)

// wrongComments names the Go files in comments that do not exist: one without its directory
// is of the package that the comment is in.
func (x *index) wrongComments(s *source, report report) {
	if !s.isGo() || s.inTestdata() {
		return
	}
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			for _, at := range goFile.FindAllStringIndex(c.Text, -1) {
				name := c.Text[at[0]:at[1]]
				if !strings.Contains(name, "/") {
					name = path.Join(s.dir(), name)
				}
				if !x.has(name) {
					report(s.line(c.Pos())+strings.Count(c.Text[:at[0]], "\n"),
						"%s does not exist", name)
				}
			}
		}
	}
}

// testName matches the name of a test, or what those of several begin with.
var testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)

// wrongTests names the tests in backquotes that there are not, and the commands that would test
// nothing: `go test` of a package that there is not, or with a pattern that no test there matches.
// PACKAGE stands for any.
func (x *index) wrongTests(s *source, report report) {
	for _, sec := range s.sections() {
		for _, sp := range sec.spans {
			if testName.MatchString(sp.text) && !x.isTest(sp.text) {
				report(sp.line, "there is no test %s", sp.text)
			}
		}
		for _, sp := range slices.Concat(sec.spans, sec.block) {
			if cmd, ok := strings.CutPrefix(sp.text, "go test "); ok {
				if wrong := x.wrongTest(strings.Fields(cmd)); wrong != "" {
					report(sp.line, "go test %s: %s", cmd, wrong)
				}
			}
		}
	}
}

// isTest reports whether there is a test whose name begins so.
func (x *index) isTest(name string) bool {
	for _, tests := range x.tests {
		if slices.ContainsFunc(tests, func(t string) bool { return strings.HasPrefix(t, name) }) {
			return true
		}
	}
	return false
}

func (x *index) wrongTest(args []string) string {
	pattern := ""
	var packages []string
	for i, arg := range args {
		dir, own := strings.CutPrefix(arg, "./")
		switch {
		case arg == "./PACKAGE":
			return ""
		case own:
			packages = append(packages, dir)
		case (arg == "-run" || arg == "-fuzz" || arg == "-bench") && i+1 < len(args):
			pattern, _, _ = strings.Cut(strings.Trim(args[i+1], "'"), "/")
		}
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err.Error()
	}
	for _, arg := range packages {
		dir, all := strings.CutSuffix(arg, "...")
		dir = path.Clean(dir)
		found := false
		for at, tests := range x.tests {
			if at == dir || all && (dir == "." || within(at, dir)) {
				found = found || slices.ContainsFunc(tests, re.MatchString)
			}
		}
		if !found {
			return fmt.Sprintf("no test of %s matches %q", arg, pattern)
		}
	}
	return ""
}

// unnamedPackages names the packages, but those of tests alone, that a document has neither
// in backquotes nor in a block.
func unnamedPackages(doc *source, files []*source) []string {
	text := string(doc.data)
	var list []string
	seen := map[string]bool{}
	for _, s := range files {
		dir := s.dir()
		if seen[dir] || !s.isGo() || s.isTest() || s.inTestdata() || s.tool() {
			continue
		}
		seen[dir] = true
		word := regexp.MustCompile(`(^|[^\w/])` + regexp.QuoteMeta(dir) + `/?($|[^\w/])`)
		if !word.MatchString(text) {
			list = append(list, dir+": "+doc.path+" does not name it")
		}
	}
	return list
}
