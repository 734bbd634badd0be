package filter

import (
	"fmt"
	"strings"

	"xroce/engine/capture"
)

// Bounds of an expression.
const (
	maxLength = 4096 // bytes
	maxDepth  = 100  // of parentheses and negations
)

// A Filter says which packets are wanted. It implements capture.Filter.
type Filter struct {
	test test
	view view
}

// A test is a part of an expression.
type test func(v *view) bool

// Compile makes a Filter of an expression. The empty one wants everything. The error is a
// *SyntaxError.
func Compile(expression string) (*Filter, error) {
	p := &parser{text: expression}
	if len(expression) > maxLength {
		return nil, &SyntaxError{
			Pos: maxLength, Problem: fmt.Sprintf("longer than %d bytes", maxLength),
		}
	}
	p.next()
	if p.kind == tokenEnd {
		return &Filter{test: func(*view) bool { return true }}, nil
	}
	t := p.expression()
	if p.err == nil && p.kind != tokenEnd {
		p.fail("unexpected %q", p.token)
	}
	if p.err != nil {
		p.err.Expression = expression
		return nil, p.err
	}
	return &Filter{test: t}, nil
}

// Match implements capture.Filter.
func (f *Filter) Match(p *capture.Packet) bool {
	f.view.reset(p)
	matches := f.test(&f.view)
	f.view.packet = nil
	return matches
}

// A SyntaxError says what is wrong with an expression, and where.
type SyntaxError struct {
	Expression string
	Pos        int // byte of the expression, from 0
	Problem    string
}

// Error says it with a caret below the place.
func (e *SyntaxError) Error() string {
	if e.Expression == "" {
		return "filter: " + e.Problem
	}
	// What moves the cursor would move the caret away from its place.
	shown := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, e.Expression)
	before := len([]rune(shown[:min(e.Pos, len(shown))]))
	return fmt.Sprintf("filter: %s\n  %s\n  %s^", e.Problem, shown, strings.Repeat(" ", before))
}
