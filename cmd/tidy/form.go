package tidy

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"path"
	"strings"
)

// The limits on length, in lines. Functions of tests may be longer.
const (
	maxFunc     = 70
	maxFuncTest = 100
	maxFile     = 500
)

// formRules say how a Go file looks.
var formRules = []rule{
	{"gofmt", checkFormat},
	{"function length", checkFuncLength},
	{"file length", checkFileLength},
	{"documented", checkDocumented},
	{"package comment", checkPackageComment},
	{"speaking", checkSpeaking},
}

// longFiles may exceed the limit on the length of a file.
var longFiles = map[string]string{}

// longFuncs may exceed the limit on the length of a function; the key is the
// path, a colon, and the name of the function.
var longFuncs = map[string]string{}

func checkFormat(s *source, report report) {
	if !s.isGo() {
		return
	}
	want, err := format.Source(s.data)
	if err != nil {
		report(0, "%v", err)
		return
	}
	if bytes.Equal(want, s.data) {
		return
	}
	have := s.lines()
	for i, text := range strings.Split(string(want), "\n") {
		if i >= len(have) || have[i] != text {
			report(i+1, "not formatted: run gofmt")
			return
		}
	}
}

// checkFuncLength counts the lines of a function from func to the closing
// brace, without those of the tables in it.
func checkFuncLength(s *source, report report) {
	if !s.isGo() || s.generated() {
		return
	}
	limit := maxFunc
	if s.isTest() {
		limit = maxFuncTest
	}
	for _, decl := range s.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil || longFuncs[s.path+":"+fn.Name.Name] != "" {
			continue
		}
		n := s.line(fn.End()) - s.line(fn.Pos()) + 1 - tableLines(s, fn.Body)
		if n > limit {
			report(s.line(fn.Pos()), "%s has %d lines, the limit is %d", fn.Name.Name, n, limit)
		}
	}
}

// tableLines counts the lines that the literal slices, arrays and maps of a
// function take up beyond their first.
func tableLines(s *source, body *ast.BlockStmt) int {
	n := 0
	ast.Inspect(body, func(node ast.Node) bool {
		lit, ok := node.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch lit.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
			n += s.line(lit.End()) - s.line(lit.Pos())
			return false
		}
		return true
	})
	return n
}

// checkFileLength limits what people write, tests and scripts as well, but not
// documents and test data.
func checkFileLength(s *source, report report) {
	if !prose(s) || path.Ext(s.path) == ".md" || s.inTestdata() || s.generated() ||
		longFiles[s.path] != "" {
		return
	}
	if n := len(s.lines()); n > maxFile {
		report(n, "%d lines, the limit is %d: two nouns in one file?", n, maxFile)
	}
}

// checkDocumented wants a comment at each exported identifier. A group in
// parentheses may share the comment of the group.
func checkDocumented(s *source, report report) {
	if !s.isGo() || s.isTest() || s.generated() {
		return
	}
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
				report(s.line(d.Pos()), "%s has no comment", d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				documentedSpec(s, d, spec, report)
			}
		}
	}
}

// exportedReceiver reports whether a method can be reached by its type's name.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func documentedSpec(s *source, d *ast.GenDecl, spec ast.Spec, report report) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		if spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
			report(s.line(spec.Pos()), "%s has no comment", spec.Name.Name)
		}
		if it, ok := spec.Type.(*ast.InterfaceType); ok {
			documentedMethods(s, spec.Name.Name, it.Methods.List, report)
		}
	case *ast.ValueSpec:
		if d.Doc != nil || spec.Doc != nil || spec.Comment != nil {
			return
		}
		for _, name := range spec.Names {
			if name.IsExported() {
				report(s.line(name.Pos()), "%s has no comment", name.Name)
			}
		}
	}
}

// documentedMethods wants a comment at each method of an exported interface,
// or at the first of a block of lines. A single method may be left to the
// comment of the interface.
func documentedMethods(s *source, name string, methods []*ast.Field, report report) {
	covered := 0 // the last line that a comment speaks for
	for _, m := range methods {
		if m.Doc != nil || m.Comment != nil || s.line(m.Pos()) == covered+1 || len(methods) == 1 {
			covered = s.line(m.End())
			continue
		}
		if len(m.Names) > 0 && m.Names[0].IsExported() {
			report(s.line(m.Pos()), "%s.%s has no comment", name, m.Names[0].Name)
		}
	}
}

// checkPackageComment wants the package comment in doc.go and nowhere else.
func checkPackageComment(s *source, report report) {
	if !s.isGo() || s.isTest() || s.generated() || s.tool() {
		return
	}
	isDoc := path.Base(s.path) == "doc.go"
	switch hasDoc := s.file.Doc != nil; {
	case isDoc && !hasDoc:
		report(1, "no package comment")
	case !isDoc && hasDoc:
		report(s.line(s.file.Package), "package comment outside doc.go")
	}
}

// checkSpeaking keeps printing, exiting and command-line flags to the floor
// that speaks to people. Tests print in examples and exit in TestMain.
func checkSpeaking(s *source, report report) {
	if !s.isGo() || s.isTest() || s.tool() || s.under(speaking...) {
		return
	}
	s.uses("fmt", func(name string, line int) {
		if strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan") {
			report(line, "fmt.%s outside cmd and bench", name)
		}
	})
	s.uses("os", func(name string, line int) {
		switch name {
		case "Exit", "Stdout", "Stderr", "Stdin", "Args":
			report(line, "os.%s outside cmd and bench", name)
		}
	})
	for _, im := range s.imports() {
		if im.path == "flag" || im.path == "log" {
			report(im.line, "%q imported outside cmd and bench", im.path)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
				report(s.line(call.Pos()), "built-in %s", f.Name)
			}
		}
		return true
	})
}

// missingDocs names the packages that have no doc.go.
func missingDocs(files []*source) []string {
	var order []string
	seen := map[string]bool{} // value: doc.go found
	for _, s := range files {
		if !s.isGo() || s.isTest() || s.inTestdata() || s.tool() {
			continue
		}
		if _, ok := seen[s.dir()]; !ok {
			order = append(order, s.dir())
			seen[s.dir()] = false
		}
		if path.Base(s.path) == "doc.go" {
			seen[s.dir()] = true
		}
	}
	var list []string
	for _, dir := range order {
		if !seen[dir] {
			list = append(list, dir+": no doc.go")
		}
	}
	return list
}

// deadTestdata names the test data that no Go file asks for. A file counts as
// asked for when Go code names it, its directory, or its kind ("*.pcap"); a
// fuzz corpus when the fuzz function it belongs to exists.
func deadTestdata(files []*source, all []string) []string {
	var code strings.Builder
	for _, s := range files {
		if s.isGo() {
			code.Write(s.data)
		}
	}
	text := code.String()
	var list []string
	for _, p := range all {
		_, rest, ok := strings.Cut("/"+p, "/testdata/")
		if !ok || strings.HasSuffix(p, ".md") {
			continue
		}
		parts := strings.Split(rest, "/")
		alive := false
		if parts[0] == "fuzz" && len(parts) > 2 {
			alive = strings.Contains(text, token.FUNC.String()+" "+parts[1]+"(")
		} else {
			ext := path.Ext(rest)
			alive = strings.Contains(text, path.Base(rest)) ||
				strings.Contains(text, "*"+ext) && ext != "" ||
				len(parts) > 1 && strings.Contains(text, parts[0]) ||
				strings.Contains(text, `"`+ext+`"`) && ext != ""
		}
		if !alive {
			list = append(list, p+": no Go file asks for it")
		}
	}
	return list
}

// objectFiles are binaries that are not data of a test.
var objectFiles = map[string]string{
	"bpf/live/live_bpfeb.o": "the programs that send live frames, likewise",
	"bpf/live/live_bpfel.o": "the same for the other byte order",
	"bpf/xdp_bpfeb.o":       "the XDP program, which is built without a compiler for it",
	"bpf/xdp_bpfel.o":       "the same for the other byte order",
}

// isPlot reports whether a binary is a picture that make plots draws.
func isPlot(p string) bool {
	return path.Dir(p) == "docs/plots" && path.Ext(p) == ".png"
}

// strayBinaries names the binaries of a tree that nobody wants there.
func strayBinaries(binaries []string) []string {
	var list []string
	for _, p := range binaries {
		if s := (source{path: p}); !s.inTestdata() && objectFiles[p] == "" && !isPlot(p) {
			list = append(list, p+": a binary that is neither data of a test nor an object file")
		}
	}
	return list
}
