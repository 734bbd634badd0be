package conversation

import (
	"fmt"
	"strings"
)

// Pos is a place in a conversation file. Lines and columns count from 1, columns
// in bytes; column 0 means the whole line.
type Pos struct {
	File string
	Line int
	Col  int
}

// String prints the position as compilers do.
func (p Pos) String() string {
	if p.Col == 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// An Error is what is wrong with a file, or with what the queue pair did.
type Error struct {
	Pos Pos
	Msg string
}

// Error prints the position and the message.
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

func errorAt(pos Pos, format string, args ...any) error {
	return &Error{pos, fmt.Sprintf(format, args...)}
}

// A token is a run of characters without spaces, except between quotation marks.
type token struct {
	text string
	pos  Pos
}

// scan splits a line into tokens. A token that begins with # ends the line: it
// is a comment.
func scan(line string, pos Pos) ([]token, error) {
	var tokens []token
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' || line[i] == '\r' {
			i++
			continue
		}
		pos.Col = i + 1
		if line[i] == '#' {
			break
		}
		n := tokenLen(line[i:])
		if n < 0 {
			return nil, errorAt(pos, "a quotation mark has no partner")
		}
		tokens = append(tokens, token{line[i : i+n], pos})
		i += n
	}
	return tokens, nil
}

// tokenLen is the length of the token that s begins with, -1 when a quotation
// mark in it is not closed.
func tokenLen(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r'):
			return i
		}
	}
	if quoted {
		return -1
	}
	return len(s)
}

// unquote takes the quotation marks off a value. A backslash stands before a
// quotation mark or a backslash that is meant as such.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s[1 : len(s)-1]), true
}

// substitute replaces each $name by its value.
func substitute(t token, vars map[string]string) (token, error) {
	rest, out := t.text, ""
	for {
		before, after, found := strings.Cut(rest, "$")
		out += before
		if !found {
			return token{out, t.pos}, nil
		}
		n := 0
		for n < len(after) && nameByte(after[n], n) {
			n++
		}
		value, ok := vars[after[:n]]
		if !ok {
			return t, errorAt(t.pos, "no variable $%s here", after[:n])
		}
		out, rest = out+value, after[n:]
		if len(out) > maxToken {
			return t, errorAt(t.pos, "more than %d bytes", maxToken)
		}
	}
}

// nameByte reports whether c may stand at place i of a name.
func nameByte(c byte, i int) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9'
}

func isName(s string) bool {
	for i := range len(s) {
		if !nameByte(s[i], i) {
			return false
		}
	}
	return s != ""
}
