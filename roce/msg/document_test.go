package msg_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"xroce/roce/msg"
)

var writeTable = flag.Bool("write-table", false, "write the table in docs/messages.md anew")

// placeNames are the places as the document calls them.
var placeNames = map[msg.Place]string{
	msg.PlaceClass: "class", msg.PlaceStatus: "status", msg.PlaceNumber: "number",
	msg.PlaceID: "ID", msg.PlaceRKey: "rkey", msg.PlaceAddr: "address",
	msg.PlaceLen: "length", msg.PlaceTag: "tag",
}

// table is the table of types as the document has it.
func table() string {
	var b strings.Builder
	b.WriteString("| | message | flags | fields, and their place where it has another name |" +
		" rails | statuses |\n|---|---|---|---|---|---|\n")
	for t := msg.Type(1); t.Fields() != nil || t == msg.TypeFIN; t++ {
		var fields, list []string
		for _, f := range t.Fields() {
			text := f.Name
			if place := placeNames[f.Place]; place != f.Name {
				text += " (" + place + ")"
			}
			if f.With != 0 {
				text += " with " + f.With.String()
			}
			if f.Min == 1 {
				text += " > 0"
			}
			fields = append(fields, text)
		}
		for _, s := range t.Statuses() {
			list = append(list, s.String())
		}
		flags, rails := "", ""
		if t.Flags() != 0 {
			flags = t.Flags().String()
		}
		if t.Rails(t.Flags()) {
			rails = "yes"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s |\n", t, t, flags,
			strings.Join(fields, ", "), rails, strings.Join(list, ", "))
	}
	return b.String()
}

// TestDocument: the table of docs/messages.md is the one that parses.
func TestDocument(t *testing.T) {
	const doc, begin, end = "../../docs/messages.md", "<!-- control -->\n", "<!-- /control -->"
	page, err := os.ReadFile(doc)
	must(t, err)
	head, rest, ok1 := strings.Cut(string(page), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", doc)
	}
	want := table()
	if *writeTable {
		must(t, os.WriteFile(doc, []byte(head+begin+want+end+tail), 0o644))
	} else if have != want {
		t.Errorf("%s is out of date: go test ./roce/msg -write-table\n%s", doc, want)
	}
}
