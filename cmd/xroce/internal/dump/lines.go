package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/capture"
	"xroce/roce/clock"
	"xroce/roce/dissect"
)

// Lines is a Sink that prints a line a packet.
type Lines struct {
	out       outlet
	iface     string
	json      bool
	dissector dissect.Dissector
	packet    dissect.Packet
	text      []byte
	line      bytes.Buffer // as JSON
}

// NewLines returns a Sink that prints packets of an interface, for people or as JSON.
func NewLines(w io.Writer, iface string, json bool) *Lines {
	return &Lines{out: outlet{to: w, count: countLines}, iface: iface, json: json}
}

// countLines returns how many lines have an end.
func countLines(b []byte) uint64 { return uint64(bytes.Count(b, []byte{'\n'})) }

// directions are how they are printed.
var directions = map[capture.Direction]string{capture.Inbound: "In", capture.Outbound: "Out"}

// jsonLine is a packet as JSON.
type jsonLine struct {
	Time      string `json:"time"`
	Interface string `json:"interface"`
	Queue     int    `json:"queue"`
	Direction string `json:"direction,omitempty"`
	Length    int    `json:"length"`
	Addresses string `json:"addresses"`
	Info      string `json:"info"`
	Comment   string `json:"comment,omitempty"`
	Missing   uint64 `json:"missing_before,omitempty"`
}

// Packet implements Sink.
func (l *Lines) Packet(p *capture.Packet) error {
	length := p.Len
	if length == 0 {
		length = len(p.Head)
	}
	l.dissector.Now = clock.Time(p.At)
	l.dissector.Dissect(dissect.LinkEthernet, p.Head, length, &l.packet)
	at := time.Unix(0, p.At)
	if l.json {
		l.line.Reset()
		encoder := json.NewEncoder(plain.Writer{W: &l.line})
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(jsonLine{
			Time: at.UTC().Format(time.RFC3339Nano), Interface: l.iface, Queue: p.Queue,
			Direction: directions[p.Dir], Length: length,
			Addresses: string(l.packet.AppendAddresses(nil)),
			Info:      string(l.packet.AppendInfo(nil)), Comment: p.Comment, Missing: p.Missing,
		})
		return errors.Join(err, l.out.put(l.line.Bytes()))
	}
	b := at.AppendFormat(l.text[:0], "15:04:05.000000000 ")
	b = append(append(b, directions[p.Dir]...), ' ')
	b = append(l.packet.AppendAddresses(b), ' ')
	b = l.packet.AppendInfo(b)
	if p.Missing > 0 {
		b = strconv.AppendUint(append(b, " ("...), p.Missing, 10)
		b = append(b, " missing before it)"...)
	}
	if p.Comment != "" {
		b = append(append(b, " # "...), plain.Text(p.Comment)...)
	}
	l.text = append(b, '\n')
	return l.out.put(l.text)
}

// Flush implements Sink.
func (l *Lines) Flush() error { return l.out.flush() }

// End implements Sink.
func (l *Lines) End(capture.Statistics) error { return l.out.flush() }

// Close implements Sink.
func (l *Lines) Close() error { return nil }

// Written implements Sink.
func (l *Lines) Written() uint64 { return l.out.packets }
