package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/capture/read"
	"xroce/roce/clock"
	"xroce/roce/dissect"
)

// msgDecodeCommand names what messages say in a capture.
func (a *app) msgDecodeCommand() *cobra.Command {
	var short bool
	c := &cobra.Command{
		Use:   "decode FILE",
		Short: "Name what messages say in a capture",
		Long: `Read a capture of any format that xroce decode reads, and print what is said in the
protocol of messages: hellos, control messages, frames with their records, and the READs
and WRITEs of rendezvous, with the time since the first packet, the addresses and the
queue pair it goes to.

A line that begins with "perhaps" is of a connection whose beginning is not in the
capture. "(again)" was sent before.

With --json each is an object on a line of its own.`,
		Example: `  xroce demo --capture demo.pcapng && xroce msg decode demo.pcapng
  tcpdump -i eth0 -w - udp port 4791 | xroce msg decode --short -
  xroce msg decode --json demo.pcapng | jq -r 'select(.dest_qp == 1) | .text'`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().BoolVar(&short, "short", false, "leave out addresses, keys, tags and counts")
	return a.command(c, func(ctx context.Context, args []string) error {
		return a.leave(ctx, func() error { return a.decodeMessages(ctx, args[0], short) })
	})
}

// A decodedMessage is a line of decode, as JSON.
type decodedMessage struct {
	Packet  int     `json:"packet"` // from 1
	Seconds float64 `json:"seconds"`
	Src     string  `json:"src"`
	Dst     string  `json:"dst"`
	DestQP  uint32  `json:"dest_qp"`
	Text    string  `json:"text"`
}

// decodeMessages prints what a capture says, as far as it can be read.
func (a *app) decodeMessages(ctx context.Context, name string, short bool) error {
	in, err := a.openCaptureInput(name, 0)
	if err != nil {
		return err
	}
	defer in.close()
	var (
		d     dissect.Dissector
		p     dissect.Packet
		first int64
	)
	return in.each(ctx, func(c *read.Packet) error {
		if c.Number == 1 {
			first = c.Time
		}
		d.Now = clock.Time(c.Time)
		if d.Dissect(c.Link, c.Data, c.Length, &p); !p.IsMessage {
			return nil
		}
		m := &p.Message
		line := decodedMessage{
			Packet: c.Number, Seconds: float64(c.Time-first) / 1e9, Src: m.Src.Addr().String(),
			Dst: m.Dst.Addr().String(), DestQP: m.DestQP, Text: m.String(),
		}
		if short {
			line.Text = m.Short()
		}
		text, err := line.print(a.json)
		if err == nil {
			_, err = a.stdout.Write(text)
		}
		return err
	})
}

// print returns the line, or the object. Text of a peer in it cannot command a terminal.
func (m *decodedMessage) print(asJSON bool) ([]byte, error) {
	if asJSON {
		object, err := json.Marshal(m)
		return append(plain.JSON(object), '\n'), err
	}
	return []byte(plain.Lines(fmt.Sprintf("%6d %10.6f %s > %s 0x%06x %s\n", m.Packet, m.Seconds,
		m.Src, m.Dst, m.DestQP, m.Text))), nil
}
