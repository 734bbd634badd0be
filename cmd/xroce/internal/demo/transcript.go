package demo

import (
	"slices"
	"strings"

	"xroce/roce/cm"
	"xroce/roce/msg"
	"xroce/roce/msg/dissect"
	"xroce/roce/wire"
)

// managerQP is the queue pair of the connection manager.
const managerQP = 1

// A transcript is what the connections of messages said, in the order of the capture.
type transcript struct {
	decoder dissect.Decoder
	last    dissect.Message
	lines   [][]Line       // of each connection
	of      map[uint32]int // the connection of a queue pair
	dialler wire.GID       // is host 0
	again   int            // messages that were sent more than once
}

// packet reads a packet, and reports whether it is one of messages or of who connects them.
func (t *transcript) packet(p *wire.Packet) bool {
	m := &t.last
	said := t.decoder.Decode(p, m)
	n, ours := t.of[p.BTH.DestQP]
	switch {
	case said && m.Again:
		t.again++
	case said && m.Kind == dissect.Write && m.Len == 0:
		// Who was not scheduled for a while is asked whether it is there, at any time.
	case said && m.Kind == dissect.Hello:
		n = t.hello(m)
		t.add(n, m)
	case said && ours:
		t.add(n, m)
	}
	return ours || p.BTH.DestQP == managerQP
}

// add notes what was said on a connection. Host 0 is who dialled.
func (t *transcript) add(n int, m *dissect.Message) {
	from := 0
	if m.Src != t.dialler {
		from = 1
	}
	t.lines[n] = append(t.lines[n], Line{from, m.Short(), m.String()})
}

// hello notes the queue pair of who says hello, and returns the connection. They are made one
// after the other.
func (t *transcript) hello(m *dissect.Message) (n int) {
	if t.of == nil {
		t.of = map[uint32]int{}
	}
	if m.Manager == cm.AttributeREQ || len(t.lines) == 0 {
		t.dialler = m.Src
		t.lines = append(t.lines, nil)
	}
	n = len(t.lines) - 1
	t.of[m.QPN] = n
	return n
}

// What connections say beside what their messages cause: when they begin, at any time, and when
// they end. Who says it first is not certain.
var (
	begins = []string{
		"REQ", "REP", msg.TypeAdvert.String(), msg.TypeAdvertAck.String(),
	}
	anyTime = []string{msg.TypeCredit.String()}
	ends    = []string{msg.TypeFIN.String(), msg.TypeBye.String()}
)

// Each end of a connection must say these. Memory is registered beside the connection, so that it
// may be closed before host 1, which sends nothing, has said that the slots of host 0 are in use,
// and before host 0 has said which they are.
var (
	opening = []string{"< ADVERT", "< ADVERT_ACK", "< REP", "> ADVERT", "> ADVERT_ACK", "> REQ"}
	unused  = []string{"< ADVERT", "< REP", "> ADVERT", "> ADVERT_ACK", "> REQ"}
	untold  = []string{"< ADVERT", "< REP", "> ADVERT_ACK", "> REQ"}
	closing = []string{"< FIN", "> FIN"}
)

// verify checks that the connections said what they must, and returns it: how one begins, each
// message, and how one ends.
func (t *transcript) verify(speeches []*speech, c tally) (list []Speech) {
	c.check(len(t.lines) == len(speeches), "the capture has %d connections of messages, not %d",
		len(t.lines), len(speeches))
	begin, end := Speech{What: "connecting"}, Speech{What: "closing"}
	for i, s := range speeches {
		var all, first, rest, last []Line
		if i < len(t.lines) {
			all = t.lines[i]
		}
		for _, line := range all {
			switch name := line.name(); {
			case slices.Contains(begins, name):
				first = append(first, line)
			case slices.Contains(ends, name):
				last = append(last, line)
			case !slices.Contains(anyTime, name):
				rest = append(rest, line)
			}
		}
		began := sorted(first)
		c.check(slices.Equal(began, opening) || slices.Equal(began, unused) ||
			slices.Equal(began, untold), "%s: the capture has %q at the beginning", s.what,
			names(first))
		c.check(slices.Equal(sorted(last), closing), "%s: the capture has %q at the end", s.what,
			names(last))
		for j := range s.messages {
			m := &s.messages[j]
			own := rest[:min(len(m.says), len(rest))]
			if rest = rest[len(own):]; j == len(s.messages)-1 {
				own = append(own, rest...)
			}
			c.check(slices.Equal(names(own), m.says), "%s: the capture has %q, not %q", s.what,
				names(own), m.says)
			list = append(list, Speech{
				What: s.what, Size: m.size, Protocol: m.how.Protocol.String(),
				Why: m.how.Why.String(), Lines: own,
			})
		}
		if end.Lines = last; len(first) >= len(begin.Lines) {
			begin.Lines = first
		}
	}
	return append(append([]Speech{begin}, list...), end)
}

// name is what a line begins with.
func (l *Line) name() string {
	name, _, _ := strings.Cut(l.Text, " ")
	return name
}

// names lists directions and names.
func names(lines []Line) []string {
	var list []string
	for i := range lines {
		list = append(list, string("><"[lines[i].From])+" "+lines[i].name())
	}
	return list
}

// sorted is names in the order of the alphabet.
func sorted(lines []Line) []string { return slices.Sorted(slices.Values(names(lines))) }
