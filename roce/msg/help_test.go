package msg_test

import (
	"encoding/hex"
	"strings"
	"testing"
)

// unhex reads hexadecimal digits, ignoring blanks.
func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper() // only now: it costs more than most of what is checked
		tb.Fatal(err)
	}
}
