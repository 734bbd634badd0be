package tidy

import (
	"go/ast"
	"go/token"
	"strings"
)

// pureDirs is the floor that does no I/O: it is handed time, randomness,
// packets and memory, and hands back values.
var pureDirs = floors[0]

// pureRules hold for the pure floor only. Its tests may do what they like.
var pureRules = []rule{
	{"pure imports", checkPureImports},
	{"pure clock", checkPureClock},
	{"pure randomness", checkPureRandom},
	{"pure concurrency", checkPureConcurrency},
}

// isPure reports whether the rules of the pure floor bind a file.
func isPure(s *source) bool {
	return s.isGo() && !s.isTest() && !s.tool() && s.under(pureDirs...)
}

// impureImports are the standard packages, and those below them, that reach
// outside the process or write to a log.
var impureImports = []string{
	"crypto/rand", "log", "net", "os", "plugin", "runtime/debug", "syscall", "io/ioutil",
}

func checkPureImports(s *source, report report) {
	if !isPure(s) {
		return
	}
	for _, im := range s.imports() {
		if im.path == "net/netip" {
			continue // addresses are values
		}
		if within(im.path, impureImports...) {
			report(im.line, "the pure floor imports %q", im.path)
		}
	}
}

// checkPureClock lets the pure floor use package time for its units only.
func checkPureClock(s *source, report report) {
	if !isPure(s) {
		return
	}
	s.uses("time", func(name string, line int) {
		switch name {
		case "Now", "Since", "Until", "Sleep",
			"After", "AfterFunc", "Tick", "NewTimer", "NewTicker":
			report(line, "the pure floor reads a clock: time.%s", name)
		}
	})
}

// checkPureRandom refuses the process-wide generator: randomness comes as a
// source that was passed in.
func checkPureRandom(s *source, report report) {
	if !isPure(s) {
		return
	}
	s.uses("math/rand/v2", func(name string, line int) {
		switch {
		case name == "Rand", name == "Source", name == "PCG", name == "ChaCha8", name == "Zipf":
		case strings.HasPrefix(name, "New"):
		default:
			report(line, "the pure floor draws from the global source: rand.%s", name)
		}
	})
}

// checkPureConcurrency refuses goroutines and channels.
func checkPureConcurrency(s *source, report report) {
	if !isPure(s) {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a goroutine"
		case *ast.ChanType:
			what = "a channel type"
		case *ast.SendStmt:
			what = "a send"
		case *ast.SelectStmt:
			what = "a select"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				what = "a receive"
			}
		}
		if what != "" {
			report(s.line(n.Pos()), "the pure floor has %s", what)
		}
		return true
	})
}
