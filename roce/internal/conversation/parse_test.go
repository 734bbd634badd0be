package conversation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseRefuses: every mistake has its place and its words.
func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"frobnicate", `f:1:1: no statement "frobnicate"`},
		{"\n  frobnicate", `f:2:3: no statement "frobnicate"`},
		{"qp", "f:1:1: the type of the QP is missing"},
		{"qp rc pmtu=300", "f:1:7: pmtu: 300 bytes are no path MTU"},
		{"qp rc timeout=x", `f:1:7: timeout: "x" is not a number`},
		{"qp rc timeout=256", "f:1:7: timeout: 256 has too many bits"},
		{"qp rc timeout=1 timeout=2", "f:1:17: timeout= is given twice"},
		{"qp rc colour=red", `f:1:7: "colour=red" means nothing here`},
		{"qp rc alt_path=1", "f:1:7: alt_path is no attribute of a new QP"},
		{"region a", "f:1:1: the length is missing"},
		{"region 1a 3 none", `f:1:1: "1a" is not a name`},
		{"region a 99999999 none", "f:1:1: the length is 0 to 65536 bytes"},
		{"region a 3 everything", `f:1:1: "everything" is not an access right`},
		{"post send", "f:1:1: wr= is missing"},
		{"post wr=1", "f:1:1: the operation is missing"},
		{"post send wr=1 sge=a:1", `f:1:16: sge: "a:1" is not REGION:OFFSET:LENGTH or`},
		{"post send wr=1 sge=0:1:0x100000000", "f:1:16: sge:"},
		{"post send wr=1 signalled", `f:1:16: "signalled" means nothing here`},
		{"post send wr=1 error=oops", "f:1:16: error: oops is not between quotation marks"},
		{`post send wr=1 error="oops`, "f:1:16: a quotation mark has no partner"},
		{"> send_onyl psn=1", "f:1:1: the name of a packet, or nothing, is missing"},
		{"> send_only psn=1 msn=2", "f:1:19: send_only has no msn"},
		{"> send_only psn=1 len=2 data=%1:0:2", "f:1:1: len= and data= exclude each other"},
		{"> ack psn=1 syndrome=rnr:32", "f:1:13: syndrome: a code of 0 to 31, not 32"},
		{"> ack psn=1 syndrome=maybe:3", `f:1:13: syndrome: "maybe:3" is not a syndrome`},
		{"< nothing", "f:1:1: the name of a packet is missing"},
		{"< send_only psn=1 data=0x1", "f:1:19: data:"},
		{"< send_only psn=1 data=%1:2", `f:1:19: data: "%1:2" is not %PATTERN:OFFSET:LENGTH`},
		{"< send_only psn=1 len=8000", "f:1:1: 8000 bytes of payload, at most 7936"},
		{"< send_only psn=1 src=here", "f:1:19: src:"},
		{"< hex 0a40", "f:1:1: want at least 12 bytes in hexadecimal digits"},
		{"< ack psn=1 refused=why", `f:1:13: refused: "why" is not a word for it`},
		{"+", "f:1:1:"},
		{"+7", ""},
		{"+7m", "f:1:1:"},
		{"+0.5ns", "f:1:1:"},
		{"+1ms-2ms", `f:1:1: "1ms-2ms" is not a time of 0 to 292 years`},
		{"deadline", "f:1:1: a time or none is missing"},
		{"cqe wr=1", "f:1:1: want: wr=ID STATUS, with success the operation too"},
		{"cqe wr=1 success", "f:1:1: want: wr=ID STATUS, with success the operation too"},
		{"memory a:0:4 = %1:0:5", "f:1:1: 4 bytes on the left, 5 on the right"},
		{"memory a:0:4 %1:0:4", "f:1:1: = is missing"},
		{"memory a:0 = %1:0:4", `f:1:1: "a:0" is not REGION:OFFSET:LENGTH`},
		{"memory a:0:2000000 = %1:0:4", "f:1:1: offset 0 and length 2000000"},
		{"modify av=somewhere", `f:1:8: av: "somewhere" is not peer, other or nowhere`},
		{"attr cap=1", "f:1:6: cap cannot be asked for"},
		{"state", "f:1:1: a state is missing"},
		{"counter drop_everything 1", "f:1:1: the name of a counter is missing"},
		{"limit many", "f:1:1: a number of receives is missing"},
		{"valid a", "f:1:1: yes or no is missing"},
		{"srq colour=red", `f:1:5: "colour=red" means nothing here`},
		{"event party", "f:1:1: the name of an event is missing"},
		{"arm", "f:1:1: sq or rq is missing"},
		{"covers: nak 0x99", `f:1: no table has a row "nak 0x99"`},
		{"todo:", "f:1: todo: wants one reason"},
		{"todo: a\ntodo: b", "f:2: todo: wants one reason"},
		{"case", "f:1:1: a case has a name and stands outside of loops"},
		{"for i in 0..3 {\ncase x", "f:2:1: a case has a name and stands outside of loops"},
		{"for i in 0..3 {", "f:1: a { has no }"},
		{"}", "f:1:1: a } has no {"},
		{"for i = 0..3 {\n}", "f:1:1: want: for NAME in FIRST..LAST {"},
		{"for i in 3 {\n}", `f:1:10: "3" is not FIRST..LAST`},
		{"for i in 0..1 {\nfor i in 0..1 {\n}\n}", "f:2:5: $i has a value already"},
		{"for i in 0..65535 {\nstate rts\n}", "more than 65536 steps"},
		{"state $x", "f:1:7: no variable $x here"},
		{"each {\n}", "f:1:1: want once: each NAME... {"},
		{"each a {\n1\n}\neach b {\n1\n}", "f:4:1: want once: each NAME... {"},
		{"each a {\n}", "f:2:1: a table has rows and ends with a line of its own"},
		{"each a b {\n1\n}", "f:2:1: 1 values for 2 names"},
		{"each a {\n1", "f:2: a { has no }"},
		{"each 1 {\n1\n}", `f:1:6: "1" is not a name`},
		{"each a {\n\"#\"\n}\n$a", "f:4:1: nothing is left of the line"},
	} {
		_, err := Parse("f", []byte(tt.text))
		var e *Error
		if tt.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tt.text, err)
			}
		} else if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %s", tt.text, err, tt.want)
		}
	}
}

// TestParseLimits: no text, however nested, makes the parser work for long.
func TestParseLimits(t *testing.T) {
	deep := ""
	for i := range 9 {
		deep += fmt.Sprintf("for v%d in 0..9 {\n", i)
	}
	long := strings.Repeat("x", 20000)
	for _, tt := range []struct{ text, want string }{
		{strings.Repeat("#\n", maxText), "a file of more than"},
		{deep, "want: for NAME in FIRST..LAST {"},
		{"for a in 0..9999 {\nfor b in 0..9999 {\n}\n}", "steps"},
		{"each a {\n" + long + "\n}\n+1$a$a", "more than 16384 bytes"},
		{"each a {\n" + strings.Repeat("1\n", 2000) + "}", "more than 1024 runs"},
		{"each a {\n" + long[:9000] + "\n}\nfor i in 0..60000 {\nstate rts $a\n}", ""},
	} {
		_, err := Parse("f", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: error %.200v, want %s", tt.text, err, tt.want)
		}
	}
}

// TestRuns: rows and cases make runs, and each has its own rows of tables.
func TestRuns(t *testing.T) {
	f, err := Parse("f", []byte(`# What it shows,
# in two lines.
covers: nak $code; timeout 3
todo: not yet

each code wait {
  0x61 1ms
  0x62 "2 ms"
}
qp rc

case one thing
covers: status SUCCESS
for i in 2..1 {
  + not looked at
}
case another
`))
	if err != nil {
		t.Fatal(err)
	}
	if f.About != "What it shows,\nin two lines.\n" || f.Todo != "not yet" {
		t.Errorf("about %q, todo %q", f.About, f.Todo)
	}
	want := []string{
		"one thing code=0x61: [nak 0x61 timeout 3 status SUCCESS]",
		"one thing code=0x62: [nak 0x62 timeout 3 status SUCCESS]",
		"another code=0x61: [nak 0x61 timeout 3]",
		"another code=0x62: [nak 0x62 timeout 3]",
	}
	for i, r := range f.Runs {
		if got := fmt.Sprintf("%s: %s", r.Name, r.Covers); i >= len(want) || got != want[i] {
			t.Errorf("run %d is %s", i, got)
		}
	}
	if len(f.Runs) != len(want) {
		t.Errorf("%d runs, want %d", len(f.Runs), len(want))
	}
}

// TestTimes: what is printed reads as the same time.
func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"0ns": "0ns", "1ns": "1ns", "999ns": "999ns", "1000ns": "1us", "4.096us*2": "8.192us",
		"67.108864ms": "67.108864ms", "0.5ms+500us": "1ms", "2*3*1s-1ns": "5.999999999s",
		"8796.093022208s": "8796.093022208s",
	} {
		got, err := parseTime(text)
		if err != nil || formatTime(got) != want {
			t.Errorf("%s is %s (%v), want %s", text, formatTime(got), err, want)
		}
	}
}

// TestPatterns differ from each other and at every offset, but for pattern 0.
func TestPatterns(t *testing.T) {
	part := func(seed uint64, off int) string {
		b := make([]byte, 16)
		pattern(b, seed, off)
		return string(b)
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		for off := range 300 {
			p := part(seed+1, off)
			if seen[p] {
				t.Fatalf("pattern %d repeats another at %d", seed+1, off)
			}
			seen[p] = true
		}
	}
	if part(1, 0)[5:] != part(1, 5)[:11] || part(0, 9) != strings.Repeat("\x00", 16) {
		t.Error("an offset moves more than the beginning")
	}
}

// TestTables: no row has two names, so that covers: is unambiguous.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range Tables {
		for _, r := range table.Rows {
			name := table.Name + " " + r.Name
			if seen[name] || r.Name == "" || table.Source == "" {
				t.Errorf("row %q", name)
			}
			seen[name] = true
		}
	}
}

// FuzzParse: no text makes the parser panic, nor the conversation that comes of
// it, and every error has a place.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("../../testdata/conversations/*.txt")
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds (%v)", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("f", text)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Pos.Line < 1 {
				t.Fatalf("%v has no place", err)
			}
			return
		}
		for _, r := range file.Runs[:min(4, len(file.Runs))] {
			if len(r.steps) > 500 {
				continue
			}
			if err := r.Play(); err != nil && (!errors.As(err, &e) || e.Pos.Line < 1) {
				t.Fatalf("%v has no place", err)
			}
		}
	})
}
