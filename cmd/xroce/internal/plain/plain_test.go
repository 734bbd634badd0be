package plain

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// hostile is every character that a terminal may obey, between two that it prints.
func hostile() string {
	var b strings.Builder
	for r := range rune(unicode.MaxRune) {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			b.WriteString("a" + string(r) + "b")
		}
	}
	return b.String()
}

func obeyed(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"über/file name.txt \\n \"":    "über/file name.txt \\n \"",
		"\x1b[2J\x1b]0;owned\a":        `\x1b[2J\x1b]0;owned\a`,
		"a\nb\r\tc":                    `a\nb\r\tc`,
		"\u009b2J":                     `\u009b2J`,
		"\u202egnp.exe":                `\u202egnp.exe`,
		"bad \xff\xfe":                 "bad \ufffd",
		strings.Repeat("x", maxText+1): strings.Repeat("x", maxText) + "... (2049 bytes)",
	} {
		if got := Brief(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
	if i := strings.IndexFunc(Text(hostile()), obeyed); i >= 0 {
		t.Errorf("at %d of %q", i, Text(hostile()))
	}
	if got := Lines("a\n\tb\x1b[1m" + strings.Repeat("x", maxText)); !strings.HasPrefix(got,
		"a\n\tb\\x1b[1mxxx") || strings.Contains(got, "bytes") {
		t.Errorf("%q", got)
	}
}

func TestJSON(t *testing.T) {
	want := hostile() + "\U0001f600\u00e9\ufffd"
	document, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	plain := JSON(document)
	if i := strings.IndexFunc(string(plain), obeyed); i >= 0 {
		t.Errorf("at %d of %q", i, plain)
	}
	var got string
	if err := json.Unmarshal(plain, &got); err != nil || got != want {
		t.Errorf("%v: it means something else", err)
	}
}
