package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A source is one text file of the tree.
type source struct {
	path string // relative to the root of the repository, with slashes
	data []byte

	// Set for Go files only.
	fset *token.FileSet
	file *ast.File
}

// newSource parses data when path names a Go file.
func newSource(path string, data []byte) (*source, error) {
	s := &source{path: path, data: data}
	if !s.isGo() {
		return s, nil
	}
	s.fset = token.NewFileSet()
	mode := parser.ParseComments | parser.SkipObjectResolution
	file, err := parser.ParseFile(s.fset, path, data, mode)
	if err != nil {
		return nil, fmt.Errorf("tidy: %w", err)
	}
	s.file = file
	return s, nil
}

func (s *source) isGo() bool   { return strings.HasSuffix(s.path, ".go") }
func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// inTestdata reports whether the file is data of a test rather than source.
func (s *source) inTestdata() bool {
	return strings.HasPrefix(s.path, "testdata/") || strings.Contains(s.path, "/testdata/")
}

// generated reports whether a program wrote the file. Those answer to their
// generator, not to the rules about form.
func (s *source) generated() bool {
	return s.isGo() && ast.IsGenerated(s.file)
}

// tool reports whether the file is a stand-alone program that no package is
// built from, such as a generator.
func (s *source) tool() bool {
	if !s.isGo() || s.file.Name.Name != "main" {
		return false
	}
	return slices.Contains(s.lines(), "//go:build ignore")
}

// dir is the directory of the file, "." at the root.
func (s *source) dir() string { return path.Dir(s.path) }

// under reports whether the file is in one of the directories, or below.
func (s *source) under(dirs ...string) bool { return within(s.dir(), dirs...) }

// within reports whether dir is one of the directories, or below one.
func within(dir string, dirs ...string) bool {
	for _, d := range dirs {
		if dir == d || strings.HasPrefix(dir, d+"/") {
			return true
		}
	}
	return false
}

// line is the line number of a position.
func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// lines splits the file; a newline at the end starts no further line.
func (s *source) lines() []string {
	return strings.Split(strings.TrimSuffix(string(s.data), "\n"), "\n")
}

// An imported is one import of a file.
type imported struct {
	path string // import path
	name string // name it goes by in the file
	line int
}

// imports lists what a Go file imports. The name of a package that is not
// renamed is taken from its path, without a version element.
func (s *source) imports() []imported {
	var list []imported
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused those
		}
		im := imported{path: p, name: path.Base(p), line: s.line(spec.Pos())}
		if len(im.name) > 1 && im.name[0] == 'v' && strings.Trim(im.name[1:], "0123456789") == "" {
			im.name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			im.name = spec.Name.Name
		}
		list = append(list, im)
	}
	return list
}

// uses calls f for each identifier of the imported package that the file
// mentions. A local variable that shadows the package is not told apart.
func (s *source) uses(pkg string, f func(name string, line int)) {
	local := ""
	for _, im := range s.imports() {
		if im.path == pkg {
			local = im.name
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				f(sel.Sel.Name, s.line(sel.Pos()))
			}
		}
		return true
	})
}

// A report takes one finding; line 0 means the file as a whole.
type report func(line int, format string, args ...any)

// A rule judges one file at a time.
type rule struct {
	name  string
	check func(*source, report)
}

// findings runs one rule over one file.
func (r rule) findings(s *source) []string {
	var list []string
	r.check(s, func(line int, format string, args ...any) {
		list = append(list, fmt.Sprintf("%s:%d: %s", s.path, line, fmt.Sprintf(format, args...)))
	})
	return list
}
