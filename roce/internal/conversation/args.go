package conversation

import (
	"fmt"
	"strings"
)

// args are the words of a statement behind its first. What a statement reads is
// marked; what is left over at the end is an error.
type args struct {
	pos   Pos
	words []token
	used  []bool
	err   error
}

func newArgs(pos Pos, words []token) *args {
	a := &args{pos: pos, words: words, used: make([]bool, len(words))}
	seen := map[string]bool{}
	for _, w := range words {
		if name, ok := keyOf(w.text); ok {
			if seen[name] {
				a.fail(w.pos, "%s= is given twice", name)
			}
			seen[name] = true
		}
	}
	return a
}

// keyOf returns the key of a key=value.
func keyOf(s string) (string, bool) {
	name, _, ok := strings.Cut(s, "=")
	return name, ok && isName(name)
}

// fail notes an error; the first one counts.
func (a *args) fail(pos Pos, format string, args ...any) {
	if a.err == nil {
		a.err = errorAt(pos, format, args...)
	}
}

// word returns the next unused word that is no key=value, "" at the end.
func (a *args) word(what string) string {
	for i, w := range a.words {
		if _, isKey := keyOf(w.text); !isKey && !a.used[i] {
			a.used[i] = true
			return w.text
		}
	}
	a.fail(a.pos, "%s is missing", what)
	return ""
}

// flag reports whether a bare word is there.
func (a *args) flag(name string) bool {
	for i, w := range a.words {
		if w.text == name && !a.used[i] {
			a.used[i] = true
			return true
		}
	}
	return false
}

// choose returns the value of the next unused bare word that is in a table.
func choose[T any](a *args, table map[string]T) (v T, name string, ok bool) {
	for i, w := range a.words {
		if v, ok := table[strings.ToLower(w.text)]; ok && !a.used[i] {
			a.used[i] = true
			return v, w.text, true
		}
	}
	return v, "", false
}

// value returns the text behind key=.
func (a *args) value(name string) (token, bool) {
	for i, w := range a.words {
		if k, ok := keyOf(w.text); ok && k == name {
			a.used[i] = true
			return token{w.text[len(k)+1:], w.pos}, true
		}
	}
	return token{}, false
}

func (a *args) has(name string) bool {
	for _, w := range a.words {
		if k, ok := keyOf(w.text); ok && k == name {
			return true
		}
	}
	return false
}

// read parses the text behind key= and returns def when there is none.
func read[T any](a *args, name string, parse func(string) (T, error), def T) T {
	t, ok := a.value(name)
	if !ok {
		return def
	}
	v, err := parse(t.text)
	if err != nil {
		a.fail(t.pos, "%s: %v", name, err)
	}
	return v
}

// number reads a number of at most limit.
func (a *args) number(name string, def, limit uint64) uint64 {
	return read(a, name, func(s string) (uint64, error) {
		n, err := parseNumber(s)
		if err == nil && n > limit {
			err = fmt.Errorf("%d is above %d", n, limit)
		}
		return n, err
	}, def)
}

// text reads a quoted text.
func (a *args) text(name string) string {
	return read(a, name, func(s string) (string, error) {
		v, ok := unquote(s)
		if !ok {
			return "", fmt.Errorf("%s is not between quotation marks", s)
		}
		return v, nil
	}, "")
}

// done ends the reading: every word must have been of use.
func (a *args) done() error {
	for i, w := range a.words {
		if !a.used[i] {
			a.fail(w.pos, "%q means nothing here", w.text)
		}
	}
	return a.err
}
