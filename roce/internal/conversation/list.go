package conversation

import (
	"fmt"
	"slices"
	"strings"
)

// List prints which files cover which rows of Tables, as Markdown. Rows that
// follow each other and have the same files share a line when they are numbers.
func List(files []*File) string {
	covered, expected := map[string][]string{}, map[string][]string{}
	for _, f := range files {
		list := covered
		if f.Todo != "" {
			list = expected
		}
		for _, r := range f.Runs {
			for _, c := range r.Covers {
				name := strings.TrimSuffix(f.Name, ".txt")
				if !slices.Contains(list[c], name) {
					list[c] = append(list[c], name)
				}
			}
		}
	}
	var b strings.Builder
	for _, t := range Tables {
		fmt.Fprintf(&b, "### %s\n\n%s; `covers: %s ROW`\n\n", t.Title, t.Source, t.Name)
		b.WriteString("| row | rule | conversations |\n|---|---|---|\n")
		for i := 0; i < len(t.Rows); {
			r := t.Rows[i]
			by := coveredBy(&r, covered[t.Name+" "+r.Name], expected[t.Name+" "+r.Name])
			name, text := r.Name, r.Text
			for i++; i < len(t.Rows) && isNumber(r.Name); i++ {
				next := t.Rows[i]
				id := t.Name + " " + next.Name
				if coveredBy(&next, covered[id], expected[id]) != by {
					break
				}
				name = r.Name + " to " + next.Name
				text = strings.TrimSuffix(r.Text+" ... "+next.Text, " ... ")
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, text, by)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func coveredBy(r *Row, files, expected []string) string {
	slices.Sort(files)
	switch {
	case len(files) > 0:
		return strings.Join(files, ", ")
	case r.Not != "":
		return "none: " + r.Not
	case len(expected) > 0:
		slices.Sort(expected)
		return "**expected to fail:** " + strings.Join(expected, ", ")
	}
	return "**none**"
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Uncovered names the rows that no file names and that give no reason.
func Uncovered(files []*File) []string {
	covered := map[string]bool{}
	for _, f := range files {
		for _, r := range f.Runs {
			for _, c := range r.Covers {
				covered[c] = true
			}
		}
	}
	var list []string
	for _, t := range Tables {
		for _, r := range t.Rows {
			if name := t.Name + " " + r.Name; !covered[name] && r.Not == "" {
				list = append(list, name)
			}
		}
	}
	return list
}
