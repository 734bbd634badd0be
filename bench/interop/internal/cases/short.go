package cases

import (
	_ "embed"
	"slices"
	"strings"
)

// shortNames are the names of the cases of the part, one in a line.
//
//go:embed short.txt
var shortNames string

// Short lists the part of Plan that continuous integration runs, in the order of
// Plan. It is written down and not drawn, so that every run is the same: each tool
// in each role over each transport once, in turns over the path MTUs, the families
// and the sizes; each fault; each tool whose packets are compared.
func Short() []Case {
	names := strings.Fields(shortNames)
	return slices.DeleteFunc(Plan(), func(c Case) bool { return !slices.Contains(names, c.Name()) })
}
