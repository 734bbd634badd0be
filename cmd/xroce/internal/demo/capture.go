package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine/capture/read"
	"xroce/roce/wire"
)

// A seen packet is what the verification needs of a captured one.
type seen struct {
	opcode   wire.Opcode
	psn      wire.PSN
	payload  int  // bytes
	positive bool // an acknowledgement that is no NAK
}

// A stream is what one host sent to a QP of the other, in order.
type stream []seen

// verifyCapture reads the capture back and checks that it has
// exactly the packets that the calls must produce, what the speeches must say, and the native
// packets.
func verifyCapture(file string, c *cast, t tally) error {
	r := reading{tally: t, streams: map[uint32]stream{}, natives: c.natives}
	for _, talk := range c.talks {
		r.streams[talk.qpn[0]], r.streams[talk.qpn[1]] = nil, nil
	}
	facts := &t.report.Capture
	if err := r.file(file, &facts.Packets); err != nil {
		return err
	}
	for _, talk := range c.talks {
		if talk.torn {
			continue
		}
		// What host 0 sent went to the QP of host 1.
		facts.Retransmits += talk.verify(
			[2]stream{r.streams[talk.qpn[1]], r.streams[talk.qpn[0]]}, t)
	}
	facts.Retransmits += r.messages.again
	t.report.Messages = r.messages.verify(c.speeches, t)
	return nil
}

// A reading is what is found in a capture.
type reading struct {
	tally
	streams         map[uint32]stream // what was sent to each QP of a talk
	messages        transcript
	natives         [][]byte // frames that are still to come, in their order
	icrc, malformed int
}

// file reads a capture and counts its packets.
func (r *reading) file(name string, packets *int) error {
	f, err := os.Open(name)
	if err != nil {
		return userfile.Failed(err)
	}
	defer f.Close()
	source, err := read.New(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer source.Close()
	var p read.Packet
	for {
		if err := source.Next(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("%s: packet %d: %w", name, *packets+1, err)
		}
		*packets++
		r.packet(p.Data)
	}
	r.check(*packets > 0, "the capture is empty")
	r.check(len(r.natives) == 0, "%d native packets are missing", len(r.natives))
	r.check(r.malformed == 0, "%d of %d captured packets are not what anybody sent",
		r.malformed, *packets)
	r.check(r.icrc == 0, "%d of %d captured packets have a wrong ICRC", r.icrc, *packets)
	return nil
}

// packet looks at a packet: whose it is, and whether its ICRC is right.
func (r *reading) packet(data []byte) {
	if len(r.natives) > 0 && bytes.HasPrefix(data, r.natives[0]) { // padding may be behind it
		r.natives = r.natives[1:]
		return
	}
	var p wire.Packet
	if p.Decode(data, nil) != wire.OK {
		r.malformed++
		return
	}
	if !p.VerifyICRC() {
		r.icrc++
	}
	to := p.BTH.DestQP
	if _, ours := r.streams[to]; ours {
		r.streams[to] = append(r.streams[to], look(&p))
	} else if !r.messages.packet(&p) {
		r.malformed++
	}
}

// look takes from a packet what the verification needs.
func look(p *wire.Packet) seen {
	s := seen{opcode: p.BTH.Opcode, psn: p.BTH.PSN, payload: p.PayloadLen()}
	if isAck(s.opcode) {
		s.positive = p.AETH().Syndrome.IsACK()
	}
	return s
}

// isAck reports whether packets of the opcode do nothing but acknowledge.
func isAck(op wire.Opcode) bool { return op == wire.RCAck || op == wire.XRCAck }

// verify checks that the hosts sent each other the packets of the calls and no
// other, and counts those that were sent more than once.
func (talk *talk) verify(sent [2]stream, t tally) (again int) {
	var asked, answers, acks [2]stream
	psn := talk.first
	for host, s := range sent {
		var requests stream
		requests, answers[host], acks[host] = s.split()
		var n int
		asked[host], n = requests.inOrder(psn[host])
		again += n
	}
	refused := 0
	for _, c := range talk.calls {
		from, to := c.from, 1-c.from
		what := talk.describe(c)
		requests, responses := talk.packets(c)
		ok, rest := asked[from].sequence(requests, psn[from])
		t.check(ok, "%s: its packets are not those of the capture from PSN 0x%06x on", what,
			psn[from])
		asked[from] = rest
		if responses != nil {
			// An answer has the PSNs that its request took: these begin where the
			// request stood.
			var n int
			answers[to], n = answers[to].inOrder(psn[from])
			again += n
			asked[from], n = talk.resume(asked[from], responses, answers[to], psn[from])
			again += n
			ok, answers[to] = answers[to].sequence(responses, psn[from])
			t.check(ok, "%s: its responses are not those of the capture", what)
			psn[from] = psn[from].Add(uint32(len(responses)))
			continue
		}
		psn[from] = psn[from].Add(uint32(len(requests)))
		if talk.reliable() {
			last := psn[from].Sub(1)
			t.check(acks[to].have(last, !c.refused),
				"%s: no answer to PSN 0x%06x that refuses it: %t", what, last, c.refused)
		}
		if c.refused {
			refused++
		}
	}
	more := len(asked[0]) + len(asked[1]) + len(answers[0]) + len(answers[1])
	t.check(more == 0, "%s: %d packets more than there were operations", talk.service, more)
	talk.verifyAcks(acks, refused, again, t)
	return again
}

// verifyAcks checks that there are acknowledgements only where there can be any,
// and negative ones only for what was refused or sent again.
func (talk *talk) verifyAcks(acks [2]stream, refused, again int, t tally) {
	all := append(append(stream{}, acks[0]...), acks[1]...)
	if !talk.reliable() {
		t.check(len(all) == 0, "%s: %d acknowledgements", talk.service, len(all))
		return
	}
	negative := 0
	for _, a := range all {
		if !a.positive {
			negative++
		}
	}
	t.check(negative == refused || again > 0,
		"%s: %d negative acknowledgements, %d refused, and no repeated packet", talk.service,
		negative, refused)
}

// sequence reports whether the stream goes on with these packets, from this PSN.
func (s stream) sequence(want []seen, psn wire.PSN) (ok bool, rest stream) {
	for i, w := range want {
		if i >= len(s) {
			return false, nil
		}
		w.psn = psn.Add(uint32(i))
		if s[i] != w {
			return false, s
		}
	}
	return true, s[len(want):]
}

// inOrder leaves out packets whose PSN was there already: those that were sent
// again because an answer was lost or late.
func (s stream) inOrder(next wire.PSN) (fresh stream, again int) {
	for _, p := range s {
		if p.psn.Before(next) {
			again++
			continue
		}
		fresh = append(fresh, p)
		next = p.psn.Add(1)
	}
	return fresh, again
}

// split separates requests, answers with something in them, and acknowledgements.
func (s stream) split() (requests, answers, acks stream) {
	for _, p := range s {
		switch {
		case p.opcode.Spec().Is(wire.ClassRequest):
			requests = append(requests, p)
		case isAck(p.opcode):
			acks = append(acks, p)
		default:
			answers = append(answers, p)
		}
	}
	return requests, answers, acks
}

// have reports whether one of the acknowledgements is for the packet.
func (s stream) have(psn wire.PSN, positive bool) bool {
	for _, a := range s {
		if a.positive == positive && a.psn == psn {
			return true
		}
	}
	return false
}
