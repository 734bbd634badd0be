package msg

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"xroce/roce/clock"
)

// TestDocumentedDefaults: the table of docs/messages.md has the defaults of each field that it
// names, and names each that has one.
func TestDocumentedDefaults(t *testing.T) {
	const doc = "../../docs/messages.md"
	page, err := os.ReadFile(doc)
	must(t, err)
	e, err := New(Config{Rand: rand.New(rand.NewPCG(1, 1))})
	must(t, err)
	config := reflect.ValueOf(e.Config())
	for i := range config.NumField() {
		name := config.Type().Field(i).Name
		value, has := defaultText(config.Field(i))
		row := fmt.Sprintf("\n| `%s` | %s |", name, value)
		if has && !strings.Contains(string(page), row) {
			t.Errorf("%s has no row %q", doc, row[1:])
		}
	}
}

// defaultText is a default as the document has it; times are of whole units.
func defaultText(v reflect.Value) (text string, has bool) {
	switch x := v.Interface().(type) {
	case int, int64:
		return fmt.Sprint(x), !v.IsZero()
	case []int:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(x), "[]"), " ", ", "), true
	case clock.Time:
		switch {
		case x == 0:
			return "never", true
		case x%clock.Second == 0:
			return fmt.Sprintf("%d s", x/clock.Second), true
		}
		return fmt.Sprintf("%d ms", x/clock.Millisecond), true
	}
	return "", false
}
