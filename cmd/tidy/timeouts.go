package tidy

import (
	"go/ast"
	"slices"
)

// timeoutRules judge how long tests wait.
var timeoutRules = []rule{{"timeouts", checkTimeouts}}

// timeoutPackage says how long a test waits on a machine that is busy.
const timeoutPackage = "xsk/xsktest/timeout"

// checkTimeouts refuses limits of seconds that do not grow on a machine that is busy: those
// of contexts, timers and deadlines in tests above the pure floor, which has no clock. Less
// than a second is no limit but a moment that a test lets pass.
func checkTimeouts(s *source, report report) {
	if !s.isTest() || s.under(append(pureDirs, timeoutPackage)...) {
		return
	}
	calls := []string{"WithTimeout", "After"}
	ast.Inspect(s.file, func(n ast.Node) bool {
		var values []ast.Expr
		switch n := n.(type) {
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if ok && (slices.Contains(calls, sel.Sel.Name) || fromNow(sel)) {
				values = n.Args
			}
		case *ast.GenDecl: // const and var at any depth
			for _, spec := range n.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && slices.ContainsFunc(v.Names, isLimit) {
					values = append(values, v.Values...)
				}
			}
		}
		for _, v := range values {
			if hasSeconds(v) {
				report(s.line(v.Pos()), "a limit that does not grow on a machine that is busy: "+
					"timeout.Scaled of %s", timeoutPackage)
			}
		}
		return true
	})
}

// fromNow reports whether a selector is that of time.Now().Add.
func fromNow(sel *ast.SelectorExpr) bool {
	call, ok := sel.X.(*ast.CallExpr)
	if !ok || sel.Sel.Name != "Add" {
		return false
	}
	now, ok := call.Fun.(*ast.SelectorExpr)
	return ok && now.Sel.Name == "Now"
}

// isLimit reports whether a name is one that tests give to a limit of time.
func isLimit(name *ast.Ident) bool {
	return slices.Contains([]string{"testTimeout", "soon", "limit", "deadline"}, name.Name)
}

// hasSeconds reports whether an expression, but for the arguments of calls in it, has a
// unit of a second or more.
func hasSeconds(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr, *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && x.Name == "time" &&
				slices.Contains([]string{"Second", "Minute", "Hour"}, n.Sel.Name) {
				found = true
			}
		}
		return true
	})
	return found
}
