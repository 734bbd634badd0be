package msg

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

var writePictures = flag.Bool("write-pictures", false,
	"draw the pictures in docs/messages.md anew")

// A picture is what two ends say to each other while an application does something.
type picture struct {
	*world
	left, right *node
	a, b        *Conn // a is that of the left one, who sends
	lines       []string
	notes       []string // what is written beside each message, in their order
	refuse      bool     // the right one has no more memory
}

// The widths of a picture: between the two bars, and of all.
const (
	pictureWidth = 58
	pictureTotal = 100
)

// draw plays a scene.
func draw(t *testing.T, s *scene) string {
	p := &picture{world: newWorld(t, 1)}
	s.config.LargeSlots = 2
	p.left, p.right = p.node(s.config), p.node(Config{LargeSlots: 2})
	caps := s.caps
	if caps == 0 {
		caps = allCapabilities
	}
	p.a, p.b = p.join(p.left, p.right, caps)
	if s.begins {
		p.notes = s.notes
		p.arrow(0, "REQ with HELLO")
		p.arrow(1, "REP with HELLO")
		p.run()
	} else {
		p.before(p.run)
		p.notes = s.notes
	}
	s.play(p)
	p.run()
	if len(p.notes) > 0 {
		t.Errorf("%s: notes that nothing stands beside: %q", s.name, p.notes)
	}
	head := fmt.Sprintf(" %-*s%s\n", pictureWidth-2, "sender", "receiver")
	return head + strings.Join(p.lines, "\n") + "\n"
}

// row is a line of the picture with a note beside it.
func (p *picture) row(left, middle, right, note string) {
	line := fmt.Sprintf("   %s%-*s%s    %s", left, pictureWidth, middle, right, note)
	line = strings.TrimRight(line, " ")
	if len(line) > pictureTotal || len(middle) > pictureWidth {
		p.t.Errorf("%d columns: %s", len(line), line)
	}
	p.lines = append(p.lines, line)
}

// arrow draws a message. Its note may have two lines.
func (p *picture) arrow(from int, text string) {
	note, second := "", ""
	if len(p.notes) > 0 {
		note, second, _ = strings.Cut(p.notes[0], "\n")
		p.notes = p.notes[1:]
	}
	p.row("|", " "+text, "|", note)
	arrow := strings.Repeat("-", pictureWidth-1)
	if from == 0 {
		p.row("|", arrow+">", "|", second)
	} else {
		p.row("|", "<"+arrow, "|", second)
	}
}

// does says what the application of an end does, or what it is told.
func (p *picture) does(end int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if end == 0 {
		p.row("o", " "+text, "|", "")
		return
	}
	p.row("|", fmt.Sprintf("%*s", pictureWidth-1, text), "o", "")
}

// run lets both ends go on until nothing more happens: each work request is done at once, in the
// order in which they were made, and told before the next.
func (p *picture) run() {
	for n := 0; p.once(); n++ {
		if n > 10_000 {
			p.t.Fatal("it never ends")
		}
	}
}

// once does all that is asked for of memory and one work request.
func (p *picture) once() bool {
	for _, n := range p.nodes {
		for r := n.endpoint.NextRequest(); r != nil; r = n.endpoint.NextRequest() {
			if n == p.right && p.refuse && r.Kind == Allocate {
				n.endpoint.Answer(p.now, r, Memory{}, errNoMemory)
				continue
			}
			n.requests = append(n.requests, r)
			n.answer(0)
		}
		var wr verbs.SendWR
		for r := n.endpoint.NextWork(p.now, &wr); r != nil; r = n.endpoint.NextWork(p.now, &wr) {
			wr.Inline = append([]byte(nil), wr.Inline...)
			pipe := r.User.(*pipe)
			pipe.queue = append(pipe.queue, wr)
			wr = verbs.SendWR{}
		}
		for n.endpoint.NextClosed() != nil || n.endpoint.NextLost() != nil {
		}
	}
	p.now += clock.Microsecond
	for end, pipe := range p.pipes {
		if len(pipe.queue) == 0 {
			continue
		}
		p.look(end, pipe, &pipe.queue[0])
		pipe.execute()
		for _, a := range pipe.came {
			pipe.to.endpoint.HandleArrival(p.now, pipe.peer.rail, &a.wc, a.control)
		}
		for _, wc := range pipe.done {
			pipe.from.endpoint.HandleWork(p.now, pipe.rail, &wc)
		}
		pipe.came, pipe.done = nil, nil
		return true
	}
	return false
}

// look draws what a work request says.
func (p *picture) look(end int, pipe *pipe, wr *verbs.SendWR) {
	length := 0
	for _, s := range wr.SGList {
		length += int(s.Length)
	}
	switch wr.Opcode {
	case verbs.OpSend:
		c, err := ParseControl(wr.Inline)
		must(p.t, err)
		p.arrow(end, c.Short())
	case verbs.OpWriteImm:
		data := make([]byte, length)
		own, list := pipe.domain.Local(), wr.SGList
		pipe.check(wr, pipe.from.keys.Load(own, list[0].LKey, list[0].Addr, data, 0))
		f, err := ParseFrame(data)
		must(p.t, err)
		i := ParseImmediate(wr.Imm)
		text := fmt.Sprintf("FRAME class=%d slot=%d", i.Class, i.Slot)
		var r Record
		for it := f.Iterate(); it.Next(&r); {
			text += "; " + r.Short()
		}
		p.arrow(end, text)
	case verbs.OpRead:
		p.arrow(end, fmt.Sprintf("READ len=%d", length))
		p.arrow(1-end, fmt.Sprintf("READ_RESPONSE len=%d", length))
	default:
		p.arrow(end, fmt.Sprintf("WRITE len=%d", length))
	}
}

// send has the sender's application send a message.
func (p *picture) send(s *Send, length int) *Send {
	p.t.Helper()
	s.Pieces = [][]byte{make([]byte, length)}
	p.does(0, "Send, %d bytes", length)
	must(p.t, p.a.Send(p.now, s))
	p.run()
	return s
}

// post has the sender's application send messages at once.
func (p *picture) post(lengths ...int) {
	p.t.Helper()
	for _, n := range lengths {
		p.does(0, "Send, %d bytes", n)
		must(p.t, p.a.Send(p.now, &Send{Pieces: [][]byte{make([]byte, n)}}))
	}
	p.run()
}

// before plays what is not in the picture.
func (p *picture) before(play func()) {
	lines, notes := p.lines, p.notes
	p.notes = nil
	play()
	p.lines, p.notes = lines, notes
}

// receive has the receiver's application ask for a message.
func (p *picture) receive(length int) {
	p.t.Helper()
	p.does(1, "Receive, %d bytes", length)
	must(p.t, p.right.endpoint.Receive(p.now, &Receive{Pieces: [][]byte{make([]byte, length)}}))
	p.run()
}

// results says which messages are complete since it was asked last.
func (p *picture) results() {
	for s := p.left.endpoint.NextSent(); s != nil; s = p.left.endpoint.NextSent() {
		switch {
		case s.Err != nil:
			p.does(0, "%v", s.Err)
		default:
			p.does(0, "sent, by %s", s.Choice.Protocol)
		}
	}
	for r := p.right.endpoint.NextReceived(); r != nil; r = p.right.endpoint.NextReceived() {
		must(p.t, r.Err)
		p.does(1, "received, %d bytes", r.Length)
	}
}

// later lets time go by.
func (p *picture) later(by clock.Time, what string) {
	p.does(0, "%s", what)
	for end := p.now + by; ; {
		at, ok := p.left.endpoint.NextDeadline()
		if !ok || at > end {
			p.now = end
			return
		}
		p.now = max(p.now, at)
		p.left.endpoint.HandleDeadline(p.now)
		p.run()
	}
}

// whole is a message that is received and its sender told.
func (p *picture) whole(s *Send, length int) {
	p.t.Helper()
	p.receive(length)
	p.send(s, length)
	p.results()
}

// TestPictures: the pictures of docs/messages.md are what two machines say.
func TestPictures(t *testing.T) {
	const doc, fence = "../../docs/messages.md", "```\n"
	page, err := os.ReadFile(doc)
	must(t, err)
	text := string(page)
	for i := range scenes {
		s := &scenes[i]
		want := draw(t, s)
		mark := fmt.Sprintf("<!-- picture: %s -->\n%s", s.name, fence)
		head, rest, ok1 := strings.Cut(text, mark)
		have, tail, ok2 := strings.Cut(rest, fence)
		if !ok1 || !ok2 {
			t.Errorf("%s has no place for picture %q", doc, s.name)
			continue
		}
		if have != want && !*writePictures {
			t.Errorf("picture %q of %s is out of date: go test ./roce/msg -run TestPictures "+
				"-write-pictures\n%s", s.name, doc, want)
		}
		text = head + mark + want + fence + tail
	}
	if n := strings.Count(text, "<!-- picture:"); n != len(scenes) {
		t.Errorf("%s has %d pictures, there are %d", doc, n, len(scenes))
	}
	if *writePictures && !t.Failed() {
		must(t, os.WriteFile(doc, []byte(text), 0o644))
	}
}
