package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// oneWay are the packages in which the files call each other one way: if a function of
// one file calls one of another, nothing there leads back. A reader can begin with the
// files that call nobody. Calls by an interface do not count.
var oneWay = []string{
	"engine", "engine/host", "engine/internal/notify", "engine/internal/pathtable",
	"engine/internal/sched", "roce", "roce/cc", "roce/clock", "roce/cm", "roce/counter",
	"roce/queue", "roce/recovery", "roce/verbs", "roce/wire",
}

// callCircles returns the circles of calls between the files of a package.
func callCircles(files []*source) ([]string, error) {
	fset := token.NewFileSet()
	var list []*ast.File
	for _, s := range files {
		f, err := parser.ParseFile(fset, s.path, s.data, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// What other packages have is unknown here, and need not be known: a call that stays
	// in the package is told by the package alone.
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := conf.Check(files[0].dir(), fset, list, info)
	calls := callGraph{}
	for id, object := range info.Uses {
		fn, ok := object.(*types.Func)
		if !ok || fn.Pkg() != pkg || isAbstract(fn) {
			continue
		}
		from := fset.Position(id.Pos()).Filename
		if to := fset.Position(fn.Origin().Pos()).Filename; from != to {
			calls.add(from, to)
		}
	}
	return calls.circles(), nil
}

// nothing has every package, with nothing in it.
type nothing struct{}

// Import implements types.Importer.
func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	p.MarkComplete()
	return p, nil
}

// isAbstract reports whether a function is a method of an interface.
func isAbstract(fn *types.Func) bool {
	recv := fn.Signature().Recv()
	return recv != nil && types.IsInterface(recv.Type())
}

// A callGraph has the files that each file calls.
type callGraph map[string][]string

func (g callGraph) add(from, to string) {
	if !slices.Contains(g[from], to) {
		g[from] = append(g[from], to)
	}
}

// circles names the files that are in circles, a line for each circle (Tarjan's
// strongly connected components).
func (g callGraph) circles() (list []string) {
	index, low := map[string]int{}, map[string]int{}
	var stack []string
	var visit func(string)
	visit = func(file string) {
		index[file] = len(index) + 1
		low[file] = index[file]
		stack = append(stack, file)
		for _, to := range g[file] {
			if index[to] == 0 {
				visit(to)
				low[file] = min(low[file], low[to])
			} else if slices.Contains(stack, to) {
				low[file] = min(low[file], index[to])
			}
		}
		if low[file] != index[file] {
			return
		}
		i := slices.Index(stack, file)
		if circle := stack[i:]; len(circle) > 1 {
			names := slices.Sorted(slices.Values(circle))
			list = append(list, fmt.Sprintf("call each other in a circle: %s",
				strings.Join(names, ", ")))
		}
		stack = stack[:i]
	}
	files := make([]string, 0, len(g))
	for file := range g {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		if index[file] == 0 {
			visit(file)
		}
	}
	return list
}
