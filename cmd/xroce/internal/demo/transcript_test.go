package demo

import "testing"

// TestTranscript: what a connection says beside what it must, or does not say, is found; who says
// hello, announces slots and ends first is left to it.
func TestTranscript(t *testing.T) {
	line := func(from int, text string) Line { return Line{From: from, Text: text} }
	begin := []Line{
		line(0, "REQ HELLO"), line(1, "REP HELLO"), line(1, "ADVERT class=0"),
		line(0, "ADVERT"), line(0, "ADVERT_ACK"), line(1, "ADVERT_ACK"),
	}
	eager, end := []Line{line(0, "FRAME class=0")}, []Line{line(1, "FIN"), line(0, "FIN")}
	join := func(parts ...[]Line) (all []Line) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for name, c := range map[string]struct {
		lines  []Line
		failed int
	}{
		"as it must be":        {join(begin, eager, end), 0},
		"a credit at any time": {join(begin, []Line{line(1, "CREDIT large=0")}, eager, end), 0},
		"another order":        {join(end, eager, begin), 0},
		"slots without use":    {join(begin[:5], eager, end), 0},
		"slots without word":   {join(begin[:4], begin[5:], eager, end), 1},
		"no message":           {join(begin, end), 1},
		"the wrong direction":  {join(begin, []Line{line(1, "FRAME")}, end), 1},
		"one more":             {join(begin, eager, eager, end), 1},
		"no end":               {join(begin, eager), 1},
		"nothing":              {nil, 3},
	} {
		s := &speech{what: name, messages: []shownMessage{{size: 1, says: []string{"> FRAME"}}}}
		for n, lines := range [][][]Line{{c.lines}, {c.lines, nil}, nil} {
			report := &Report{}
			said := (&transcript{lines: lines}).verify([]*speech{s}, tally{report})
			want := [3]int{c.failed, c.failed + 1, 4}[n]
			if report.Failed != want || len(said) != 3 {
				t.Errorf("%s, %d connections: %d failed, %q", name, len(lines), report.Failed,
					report.Failures)
			}
		}
	}
}
