package dissect

import (
	"fmt"
	"strings"
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
		return m.Control.Short()
	case Frame:
		var b strings.Builder
		fmt.Fprintf(&b, "FRAME class=%d slot=%d", m.Immediate.Class, m.Immediate.Slot)
		for i := range m.Records[:min(len(m.Records), shownRecords)] {
			b.WriteString("; " + m.Records[i].Short())
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
