package report

import "strings"

// wrap breaks the text of a list item into lines.
func wrap(text string, columns int) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > columns {
			b.WriteString(line + "\n")
			line = "  " + word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
