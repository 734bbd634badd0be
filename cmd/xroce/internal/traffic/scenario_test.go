package traffic_test

import (
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/traffic"
)

// TestScenarioErrors: what is wrong is said with its line, in words of the file.
func TestScenarioErrors(t *testing.T) {
	for text, want := range map[string]string{
		"line_rate: 1gbps\nflow: []\n":             `line 2: there is no word "flow" here`,
		"flows:\n- kind: udp\n  colour: red\n":     `line 3: there is no word "colour" here`,
		"count: many\nflows: [{kind: udp}]\n":      "line 1: want a number that is not negative",
		"flows: 3\n":                               "line 1: want something else, not `3`",
		"flows:\n- kind: udp\n  vary: {a: 1}\n":    "line 3: want ",
		"a: 1\nb: 2\nflows: [{kind: udp}]\n":       "line 2: there is no word \"b\"",
		"flows: [\n":                               "line 1",
		"flows:\n- {roce: {dest_qp: [1]}}\nx: 1\n": `line 3: there is no word "x"`,
	} {
		_, err := traffic.ParseScenario([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
			continue
		}
		for _, other := range []string{"traffic.", "uint", "unmarshal", "!!", "[]"} {
			if strings.Contains(err.Error(), other) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}
