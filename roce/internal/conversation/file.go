package conversation

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a file, so that no text makes the parser work for long.
const (
	maxText  = 1 << 18 // bytes of text
	maxToken = 1 << 14 // bytes of a word with its variables filled in
	maxWords = 1 << 24 // bytes of all words of all runs together
	maxSteps = 1 << 16 // steps of all runs together
	maxRuns  = 1 << 10
	maxDepth = 8 // loops inside loops
)

// A File is a parsed conversation file: what it shows, and the runs to play.
type File struct {
	Name  string
	About string // the comment at its top
	Todo  string // why it is expected to fail, "" when it is not
	Runs  []*Run
}

// A Run is one conversation with one fresh queue pair: a row of the file's
// table, if there is one, through one of its cases, if there are any.
type Run struct {
	Name   string   // "" in a file without table and cases
	Covers []string // rows of Tables, as "table row"
	steps  []step
	file   string
	end    Pos
}

// A step is a statement with its variables filled in.
type step struct {
	pos  Pos
	text string
	play action
}

// An action is what a step does and expects.
type action func(p *player) error

// Parse reads a conversation file. Errors are of type *Error and tell the place.
func Parse(name string, text []byte) (*File, error) {
	f := &File{Name: name}
	if len(text) > maxText {
		return nil, errorAt(Pos{File: name, Line: 1}, "a file of more than %d bytes", maxText)
	}
	p := parser{file: f}
	if err := p.read(string(text)); err != nil {
		return nil, err
	}
	if err := p.expand(); err != nil {
		return nil, err
	}
	return f, nil
}

// A parser holds a file in parts: the lines before the first case, the cases,
// the table.
type parser struct {
	file   *File
	common []node
	cases  []section
	names  []string // columns of the table
	rows   []row
	covers []token
	steps  int
	size   int // bytes of all words so far
	end    Pos
}

// A section is a case: its name and its lines.
type section struct {
	name   string
	body   []node
	covers []token
}

// A row of the table gives each of its names a value.
type row []string

// A node is a line, or a loop with the lines inside.
type node struct {
	words []token
	body  []node // of a loop
}

// read splits the text into lines and puts each where it belongs.
func (p *parser) read(text string) error {
	pos := Pos{File: p.file.Name}
	var open []*node // loops that are not closed
	inTable := false
	header := true
	var about strings.Builder
	defer func() { p.file.About = about.String() }()
	for _, line := range strings.Split(text, "\n") {
		pos.Line++
		if comment, ok := strings.CutPrefix(line, "#"); ok && header {
			about.WriteString(strings.TrimSpace(comment) + "\n")
			continue
		}
		header = false
		if done, err := p.header(line, pos); done || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		words, err := scan(line, pos)
		if err != nil {
			return err
		}
		if len(words) == 0 {
			continue
		}
		if inTable {
			inTable, err = p.row(words)
		} else {
			inTable, err = p.line(words, &open)
		}
		if err != nil {
			return err
		}
	}
	p.end = pos
	if inTable || len(open) > 0 {
		return errorAt(pos, "a { has no }")
	}
	return nil
}

// header takes the lines that are not statements.
func (p *parser) header(line string, pos Pos) (bool, error) {
	word, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
	rest = strings.TrimSpace(rest)
	switch {
	case !ok:
		return false, nil
	case word == "todo":
		if rest == "" || p.file.Todo != "" {
			return true, errorAt(pos, "todo: wants one reason")
		}
		p.file.Todo = rest
		return true, nil
	case word == "covers":
		list := &p.covers
		if n := len(p.cases); n > 0 {
			list = &p.cases[n-1].covers
		}
		for _, one := range strings.Split(rest, ";") {
			*list = append(*list, token{strings.TrimSpace(one), pos})
		}
		return true, nil
	}
	return false, nil
}

// line takes a statement, the beginning or the end of a loop, a case or the
// beginning of the table. It returns true for the latter.
func (p *parser) line(words []token, open *[]*node) (bool, error) {
	first, last := words[0], words[len(words)-1]
	switch {
	case first.text == "case":
		if len(*open) > 0 || len(words) == 1 {
			return false, errorAt(first.pos, "a case has a name and stands outside of loops")
		}
		var name []string
		for _, w := range words[1:] {
			name = append(name, w.text)
		}
		p.cases = append(p.cases, section{name: strings.Join(name, " ")})
		return false, nil
	case first.text == "each":
		return true, p.table(words)
	case first.text == "}" && len(words) == 1:
		if len(*open) == 0 {
			return false, errorAt(first.pos, "a } has no {")
		}
		*open = (*open)[:len(*open)-1]
		return false, nil
	}
	list := p.list(*open)
	*list = append(*list, node{words: words})
	if first.text == "for" {
		if len(*open) == maxDepth || len(words) != 5 || !isName(words[1].text) ||
			words[2].text != "in" || last.text != "{" {
			return false, errorAt(first.pos, "want: for NAME in FIRST..LAST {")
		}
		*open = append(*open, &(*list)[len(*list)-1])
	}
	return false, nil
}

// list is where the next line goes.
func (p *parser) list(open []*node) *[]node {
	switch n := len(p.cases); {
	case len(open) > 0:
		return &open[len(open)-1].body
	case n > 0:
		return &p.cases[n-1].body
	default:
		return &p.common
	}
}

func (p *parser) table(words []token) error {
	n := len(words)
	if p.names != nil || n < 3 || words[n-1].text != "{" {
		return errorAt(words[0].pos, "want once: each NAME... {")
	}
	for _, w := range words[1 : n-1] {
		if !isName(w.text) {
			return errorAt(w.pos, "%q is not a name", w.text)
		}
		p.names = append(p.names, w.text)
	}
	return nil
}

// row takes a row of the table and returns false at its end.
func (p *parser) row(words []token) (bool, error) {
	if words[0].text == "}" {
		if len(words) > 1 || len(p.rows) == 0 {
			return false, errorAt(words[0].pos, "a table has rows and ends with a line of its own")
		}
		return false, nil
	}
	if len(words) != len(p.names) {
		return false, errorAt(words[0].pos, "%d values for %d names", len(words), len(p.names))
	}
	var r row
	for _, w := range words {
		value := w.text
		if text, ok := unquote(value); ok {
			value = text
		}
		r = append(r, value)
	}
	p.rows = append(p.rows, r)
	return true, nil
}

// expand makes the runs: every row through every case.
func (p *parser) expand() error {
	if p.rows == nil {
		p.rows = []row{nil}
	}
	if p.cases == nil {
		p.cases = []section{{}}
	}
	if len(p.rows)*len(p.cases) > maxRuns {
		return errorAt(p.end, "more than %d runs", maxRuns)
	}
	for _, s := range p.cases {
		for _, r := range p.rows {
			vars := map[string]string{}
			name := s.name
			for i, v := range r {
				vars[p.names[i]] = v
			}
			if r != nil {
				name = strings.TrimPrefix(name+" "+p.names[0]+"="+r[0], " ")
			}
			run := &Run{Name: name, file: p.file.Name, end: p.end}
			if err := p.fill(run, &s, vars); err != nil {
				return err
			}
			p.file.Runs = append(p.file.Runs, run)
		}
	}
	return nil
}

func (p *parser) fill(run *Run, s *section, vars map[string]string) error {
	for _, list := range [][]token{p.covers, s.covers} {
		for _, c := range list {
			c, err := substitute(c, vars)
			if err != nil {
				return err
			}
			if !known(c.text) {
				return errorAt(c.pos, "no table has a row %q", c.text)
			}
			run.Covers = append(run.Covers, c.text)
		}
	}
	if err := p.statements(run, p.common, vars); err != nil {
		return err
	}
	return p.statements(run, s.body, vars)
}

// statements turns lines into steps, loops as often as they say.
func (p *parser) statements(run *Run, list []node, vars map[string]string) error {
	for _, n := range list {
		words, err := fillIn(n.words, vars)
		if err != nil {
			return err
		}
		for _, w := range words {
			p.size += len(w.text)
		}
		if p.size > maxWords {
			return errorAt(words[0].pos, "more than %d bytes of words", maxWords)
		}
		// A loop counts too: an empty one inside another is work as well.
		if p.steps++; p.steps > maxSteps {
			return errorAt(words[0].pos, "more than %d steps", maxSteps)
		}
		if words[0].text == "for" {
			if err := p.loop(run, words, n.body, vars); err != nil {
				return err
			}
			continue
		}
		s, err := parseStatement(words)
		if err != nil {
			return err
		}
		run.steps = append(run.steps, s)
	}
	return nil
}

// fillIn replaces the variables of a line. One that stands alone may stand for
// several words.
func fillIn(line []token, vars map[string]string) ([]token, error) {
	var words []token
	for _, w := range line {
		filled, err := substitute(w, vars)
		if err != nil {
			return nil, err
		}
		if filled.text == w.text || !isName(strings.TrimPrefix(w.text, "$")) {
			words = append(words, filled)
			continue
		}
		several, err := scan(filled.text, w.pos)
		if err != nil {
			return nil, err
		}
		for _, one := range several {
			words = append(words, token{one.text, w.pos})
		}
	}
	if len(words) == 0 {
		return nil, errorAt(line[0].pos, "nothing is left of the line")
	}
	return words, nil
}

func (p *parser) loop(run *Run, words []token, body []node, vars map[string]string) error {
	lo, hi, ok := strings.Cut(words[3].text, "..")
	from, err1 := parseNumber(lo)
	to, err2 := parseNumber(hi)
	if !ok || err1 != nil || err2 != nil || from > maxSteps || to > maxSteps {
		return errorAt(words[3].pos, "%q is not FIRST..LAST", words[3].text)
	}
	name := words[1].text
	if _, taken := vars[name]; taken {
		return errorAt(words[1].pos, "$%s has a value already", name)
	}
	defer delete(vars, name)
	for i := from; i <= to; i++ {
		vars[name] = strconv.FormatUint(i, 10)
		if p.steps++; p.steps > maxSteps {
			return errorAt(words[0].pos, "more than %d steps", maxSteps)
		}
		if err := p.statements(run, body, vars); err != nil {
			return err
		}
	}
	return nil
}

// parseStatement finds the statement in the table and lets it read its words.
func parseStatement(words []token) (step, error) {
	var text []string
	for _, w := range words {
		text = append(text, w.text)
	}
	s := step{pos: words[0].pos, text: strings.Join(text, " ")}
	name, rest := words[0].text, words[1:]
	if t, ok := strings.CutPrefix(name, "+"); ok {
		name, rest = "+", append([]token{{t, words[0].pos}}, rest...)
	}
	parse, ok := statements[name]
	if !ok {
		return s, errorAt(s.pos, "no statement %q", name)
	}
	a := newArgs(s.pos, rest)
	s.pos.Col = 0
	s.play = parse(a)
	if err := a.done(); err != nil {
		return s, err
	}
	return s, nil
}

// String names the run as the test does.
func (r *Run) String() string {
	if r.Name == "" {
		return r.file
	}
	return fmt.Sprintf("%s (%s)", r.file, r.Name)
}
