package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// raced are the files that start goroutines in a package of which `make race` runs a
// part only, each with what the tests are called that it is run by.
var raced = map[string]string{
	"roce/race_test.go":               "Goroutines",
	"engine/sim/trial/campaign.go":    "TestSeeds$$",
	"engine/sim/msgtrial/campaign.go": "TestSeeds$$",
}

// noRace reads the list NO_RACE of the Makefile: the directories of the packages that
// `make race` leaves out.
func noRace(makefile *source) []string {
	text := strings.ReplaceAll(string(makefile.data), "\\\n", " ")
	m := regexp.MustCompile(`(?m)^NO_RACE := (.*)$`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	var dirs []string
	for _, dir := range strings.Fields(m[1]) {
		dirs = append(dirs, strings.TrimPrefix(dir, "./"))
	}
	return dirs
}

// startsGoroutines lists where a Go file does, whatever runs it: go statements, and the
// calls that hide one.
func startsGoroutines(s *source) []string {
	var list []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a go statement"
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			hidden := []string{"Go", "Parallel", "RunParallel", "AfterFunc", "EachSeed", "RunSeeds"}
			if ok && slices.Contains(hidden, sel.Sel.Name) {
				what = "a call of " + sel.Sel.Name
			}
		}
		if what != "" {
			list = append(list, fmt.Sprintf("%s:%d: %s in a package that `make race` leaves out",
				s.path, s.line(n.Pos()), what))
		}
		return true
	})
	return list
}

// part is how `make race` runs some tests of packages: their names, and the packages.
var part = regexp.MustCompile(`(?m)^\t\$\$test -run '?([^ ']+)'?((?: \./[\w/]+)+) \|\| bad=1`)

// racesPart tells whether `make race` runs the tests of a name in a package.
func racesPart(makefile *source, name, dir string) bool {
	for _, m := range part.FindAllSubmatch(makefile.data, -1) {
		if slices.Contains(strings.Split(string(m[1]), "|"), name) &&
			slices.Contains(strings.Fields(string(m[2])), "./"+dir) {
			return true
		}
	}
	return false
}

// unraced lists what is concurrent and not run under the race detector.
func unraced(makefile *source, files []*source) []string {
	dirs := noRace(makefile)
	if len(dirs) == 0 {
		return []string{"Makefile: there is no NO_RACE"}
	}
	var list []string
	for _, s := range files {
		if !s.isGo() || s.inTestdata() || !slices.Contains(dirs, s.dir()) {
			continue
		}
		found := startsGoroutines(s)
		name, some := raced[s.path]
		switch {
		case some && len(found) == 0:
			list = append(list, s.path+" starts no goroutine: it needs no exception")
		case some && !racesPart(makefile, name, s.dir()):
			list = append(list, "Makefile: race does not run "+name+" of "+s.dir())
		case !some:
			list = append(list, found...)
		}
	}
	return list
}
