package traffic

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParseScenario reads a scenario file: a Plan as one YAML document. A word that is none of a
// plan is refused with its line.
func ParseScenario(text []byte) (p Plan, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	switch err := d.Decode(&p); {
	case errors.Is(err, io.EOF):
		return p, badPlan("the file is empty")
	case err != nil:
		return p, fmt.Errorf("%w: %w", ErrPlan, plainly(err))
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return p, badPlan("there is something behind the first document")
	}
	if len(p.Flows) == 0 {
		return p, badPlan("it has no flows")
	}
	return p, nil
}

// What the decoder says of a document that is YAML and no plan, in words of Go.
var (
	unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)
	otherType    = regexp.MustCompile("cannot unmarshal !!\\w+( `.*`)? into (\\S+)")
)

// kinds are what belongs where a type of Go is.
var kinds = map[string]string{
	"uint64": "a number that is not negative", "uint32": "a number that is not negative",
	"uint16": "a number that is not negative", "int": "a whole number", "int64": "a whole number",
	"bool": "true or false", "float64": "a number", "string": "a text", "[]string": "a list",
}

// plainly says what is wrong with a document, with its lines, in words of the document.
func plainly(err error) error {
	var list *yaml.TypeError
	if !errors.As(err, &list) {
		return err
	}
	said := make([]string, 0, len(list.Errors))
	for _, text := range list.Errors {
		text = unknownField.ReplaceAllString(text, `there is no word "$1" here`)
		text = otherType.ReplaceAllStringFunc(text, func(found string) string {
			m := otherType.FindStringSubmatch(found)
			want, ok := kinds[m[2]]
			if !ok {
				want = "something else"
			}
			return "want " + want + ", not" + cmp.Or(m[1], " this")
		})
		said = append(said, text)
	}
	return errors.New(strings.Join(said, "\n  "))
}
