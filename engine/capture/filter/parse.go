package filter

import "strconv"

// A parser makes tests of an expression. After its first error it goes on without harm: what
// it returns then is not used.
type parser struct {
	text       string
	pos        int // of the token
	kind       tokenKind
	token      string
	inBrackets bool
	depth      int
	err        *SyntaxError
}

// never is what is returned where there is an error.
func never(*view) bool { return false }

// expression is a chain of terms. "and" and "or" bind alike, as in tcpdump.
func (p *parser) expression() test {
	left := p.term()
	for p.err == nil {
		switch {
		case p.accept("and", "&&"):
			a, b := left, p.term()
			left = func(v *view) bool { return a(v) && b(v) }
		case p.accept("or", "||"):
			a, b := left, p.term()
			left = func(v *view) bool { return a(v) || b(v) }
		default:
			return left
		}
	}
	return never
}

// term is a primitive, perhaps negated, or an expression in parentheses.
func (p *parser) term() test {
	if p.depth++; p.depth > maxDepth {
		p.fail("deeper than %d parentheses", maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.err != nil:
		return never
	case p.accept("not", "!"):
		t := p.term()
		return func(v *view) bool { return !t(v) }
	case p.accept("("):
		t := p.expression()
		p.expect(")")
		return t
	case p.kind != tokenWord:
		p.fail("want a condition%s", p.found())
		return never
	}
	return p.primitive()
}

// number takes a number of at most so many bits, decimal or with 0x.
func (p *parser) number(bits int) uint64 {
	n, err := strconv.ParseUint(p.token, 0, bits)
	if p.kind != tokenWord || err != nil {
		p.fail("want a number of %d bits%s", bits, p.found())
		return 0
	}
	p.next()
	return n
}

// A comparison compares what a packet has with what was asked for.
type comparison func(have, want uint64) bool

var comparisons = map[string]comparison{
	"==": func(a, b uint64) bool { return a == b },
	"=":  func(a, b uint64) bool { return a == b },
	"!=": func(a, b uint64) bool { return a != b },
	"<":  func(a, b uint64) bool { return a < b },
	"<=": func(a, b uint64) bool { return a <= b },
	">":  func(a, b uint64) bool { return a > b },
	">=": func(a, b uint64) bool { return a >= b },
}

// comparison takes an operator.
func (p *parser) comparison() comparison {
	c := comparisons[p.token]
	if c == nil || p.kind != tokenSymbol {
		p.fail("want one of == != < <= > >=%s", p.found())
		return comparisons["=="]
	}
	p.next()
	return c
}

// isComparison reports whether the token is an operator that compares.
func (p *parser) isComparison() bool {
	return p.kind == tokenSymbol && comparisons[p.token] != nil
}
