package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"

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
		return p, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return p, badPlan("there is something behind the first document")
	}
	if len(p.Flows) == 0 {
		return p, badPlan("it has no flows")
	}
	return p, nil
}
