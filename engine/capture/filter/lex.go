package filter

import (
	"fmt"
	"strings"
)

// tokenKind says what a token is.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // a name, a number or an address
	tokenSymbol           // an operator or a bracket
)

// symbols are the operators and brackets, the long ones first.
var symbols = []string{
	"==", "!=", "<=", ">=", "&&", "||", "=", "<", ">", "!", "(", ")", "[", "]", ":", "&",
}

// next moves to the next token.
func (p *parser) next() {
	p.pos += len(p.token)
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	rest := p.text[p.pos:]
	if rest == "" {
		p.kind, p.token = tokenEnd, ""
		return
	}
	if n := wordLen(rest, p.inBrackets); n > 0 {
		p.kind, p.token = tokenWord, rest[:n]
		return
	}
	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			p.kind, p.token = tokenSymbol, s
			return
		}
	}
	p.token = string([]rune(rest)[:1])
	p.kind = tokenSymbol
	p.fail("%q is no part of a filter", p.token)
}

// wordLen is the length of the word that a text begins with. A colon is part of an address,
// but not between brackets.
func wordLen(s string, inBrackets bool) int {
	n := 0
	for n < len(s) && (isWordByte(s[n]) || s[n] == ':' && !inBrackets) {
		n++
	}
	return n
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '_' || c == '.' || c == '/' || c == '-' || c == '%'
}

// is reports whether the token is one of these, which are in lower case.
func (p *parser) is(tokens ...string) bool {
	for _, t := range tokens {
		if p.kind != tokenEnd && strings.EqualFold(p.token, t) {
			return true
		}
	}
	return false
}

// accept moves on if the token is one of these, and reports that.
func (p *parser) accept(tokens ...string) bool {
	if !p.is(tokens...) {
		return false
	}
	p.next()
	return true
}

// expect moves on behind a token that must be there.
func (p *parser) expect(token string) {
	if !p.accept(token) {
		p.fail("want %q%s", token, p.found())
	}
}

// found says what there is instead of what was wanted.
func (p *parser) found() string {
	if p.kind == tokenEnd {
		return " at the end"
	}
	return fmt.Sprintf(", not %q", p.token)
}

// fail keeps the first thing that is wrong, at the token.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &SyntaxError{Pos: p.pos, Problem: fmt.Sprintf(format, args...)}
	}
}
