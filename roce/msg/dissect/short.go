package dissect

import (
	"fmt"
	"strings"

	"xroce/roce/msg"
)

// Short prints what people look at first: the name, and the fields that are no addresses, keys,
// tags and counts of the connection. String has all.
func (m *Message) Short() string {
	if m.Err != nil {
		return m.String()
	}
	switch m.Kind {
	case Hello:
		return fmt.Sprintf("%s HELLO payload=%d slots=%d rendezvous=%d", m.Manager,
			m.Hello.Payload, m.Hello.Slots, m.Hello.Rendezvous)
	case Control:
		return shortControl(&m.Control)
	case Frame:
		var b strings.Builder
		fmt.Fprintf(&b, "FRAME class=%d slot=%d", m.Immediate.Class, m.Immediate.Slot)
		for i := range m.Records[:min(len(m.Records), shownRecords)] {
			r := &m.Records[i]
			fmt.Fprintf(&b, "; %s", r.Type)
			if r.Flags != 0 {
				fmt.Fprintf(&b, " %s", r.Flags)
			}
			switch r.Type {
			case msg.RecordFragment:
				fmt.Fprintf(&b, " offset=%d", r.Tag)
			case msg.RecordActive:
				fmt.Fprintf(&b, " handler=%d", r.Number)
			}
			fmt.Fprintf(&b, " len=%d", r.Len)
		}
		if more := m.Count - shownRecords; more > 0 {
			fmt.Fprintf(&b, "; and %d more", more)
		}
		return b.String()
	case Read, Write:
		name := "READ"
		if m.Kind == Write {
			name = "WRITE"
		}
		if m.Known {
			return fmt.Sprintf("%s id=%d len=%d", name, m.ID, m.Len)
		}
		return fmt.Sprintf("%s len=%d", name, m.Len)
	}
	return m.String()
}

// shortControl is Short of a control message.
func shortControl(c *msg.Control) string {
	var b strings.Builder
	b.WriteString(c.Type.String())
	if c.Flags != 0 {
		fmt.Fprintf(&b, " %s", c.Flags)
	}
	for _, f := range c.Type.Fields() {
		switch {
		case !f.In(c.Flags) || f.Hex:
		case f.Place == msg.PlaceStatus:
			fmt.Fprintf(&b, " %s", c.Status)
		default:
			fmt.Fprintf(&b, " %s=%d", f.Name, c.Value(f.Place))
		}
	}
	return b.String()
}
