package msg

import (
	"fmt"
	"strings"
)

// Short prints what people look at first: the name, the flags, and the fields but for addresses,
// keys, tags and what every message has. String prints all.
func (c *Control) Short() string {
	var b strings.Builder
	b.WriteString(c.Type.String())
	if c.Flags != 0 {
		fmt.Fprintf(&b, " %s", c.Flags)
	}
	for _, f := range c.Type.Fields() {
		switch {
		case !f.In(c.Flags) || f.Hex:
		case f.Place == PlaceStatus:
			fmt.Fprintf(&b, " %s", c.Status)
		default:
			fmt.Fprintf(&b, " %s=%d", f.Name, c.Value(f.Place))
		}
	}
	return b.String()
}

// Short prints what people look at first: the type, the flags, where it belongs and how long it is.
func (h *RecordHeader) Short() string {
	var b strings.Builder
	b.WriteString(h.Type.String())
	if h.Flags != 0 {
		fmt.Fprintf(&b, " %s", h.Flags)
	}
	switch h.Type {
	case RecordFragment:
		fmt.Fprintf(&b, " offset=%d", h.Tag)
	case RecordActive:
		fmt.Fprintf(&b, " handler=%d", h.Number)
	}
	fmt.Fprintf(&b, " len=%d", h.Len)
	return b.String()
}
