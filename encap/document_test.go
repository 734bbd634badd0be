package encap

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var writeTables = flag.Bool("write-tables", false, "write the tables in docs/encap.md anew")

const document = "../docs/encap.md"

// formatTable is the table of formats as the document has it.
func formatTable() string {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	var b strings.Builder
	b.WriteString("| format | travels in | EtherType | headers | trailers | carries, by |" +
		" in a packet | in segments | in a message | length is told by | specified in |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range Formats() {
		etherType := "RoCE's"
		if s.EtherType != 0 {
			etherType = fmt.Sprintf("0x%04X", s.EtherType)
		}
		var carries []string
		for _, c := range s.Codes {
			text := c.Kind.String()
			switch {
			case s.Format == RawGRH:
				text += fmt.Sprintf(" %d", c.Code)
			case s.CodeField != "":
				text += fmt.Sprintf(" 0x%04X", c.Code)
			}
			carries = append(carries, text)
		}
		what := strings.Join(carries, ", ")
		if s.CodeField != "" {
			what += "; " + s.CodeField
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", s.Name,
			s.Carriers, etherType, strings.Join(s.Headers, ", "), strings.Join(s.Trailers, ", "),
			what, number(s.Whole), number(s.Segmented), number(s.Connected), s.Length, s.Source)
	}
	return b.String()
}

// packets are those that were written by hand, with their parts named.
func packets(t *testing.T) string {
	var b strings.Builder
	b.WriteString("```\n")
	for _, v := range vectors {
		fmt.Fprintf(&b, "%s (%s)\n", v.name, v.format)
		list, r := Fields(v.format, unhex(t, v.packet))
		if r != OK {
			t.Fatalf("%s: %s", v.name, r)
		}
		for _, f := range list {
			const most = 8 // bytes that are shown
			hex := fmt.Sprintf("%x", f.Bytes)
			if len(f.Bytes) > most {
				hex = hex[:2*most-2] + ".."
			}
			if f.Name == "GRH" { // with its addresses it is a long line
				f.Text, _, _ = strings.Cut(strings.TrimPrefix(f.Text, "grh.ipver=6 "), " sgid=")
			}
			line := fmt.Sprintf("  %-17s %-16s %s", f.Name, hex, f.Text)
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// reasons are the names of the reasons.
func reasons() string {
	var list []string
	for r := Reason(1); int(r) < NumReasons; r++ {
		list = append(list, "`"+r.String()+"`")
	}
	var b strings.Builder
	line := ""
	for i, name := range list {
		if i < len(list)-1 {
			name += ","
		}
		if len(line)+1+len(name) > 98 {
			b.WriteString(line + "\n")
			line = ""
		}
		line = strings.TrimSpace(line + " " + name)
	}
	return b.String() + line + "\n"
}

// TestDocument: the tables of docs/encap.md are what builder and parser go by.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, part := range []struct{ mark, want string }{
		{"formats", formatTable()}, {"packets", packets(t)}, {"reasons", reasons()},
	} {
		begin, end := "<!-- "+part.mark+" -->\n", "<!-- /"+part.mark+" -->"
		head, rest, ok1 := strings.Cut(text, begin)
		have, tail, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("%s has no place for %s", document, part.mark)
		}
		if have != part.want && !*writeTables {
			t.Errorf("%s of %s is out of date: go test ./encap -write-tables\n%s", part.mark,
				document, part.want)
		}
		text = head + begin + part.want + end + tail
	}
	if *writeTables {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
