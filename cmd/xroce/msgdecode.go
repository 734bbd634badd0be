package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/spf13/cobra"

	"xroce/roce/msg/dissect"
	"xroce/roce/wire"
)

// msgDecodeCommand names what messages say in a capture.
func (a *app) msgDecodeCommand() *cobra.Command {
	var short bool
	c := &cobra.Command{
		Use:   "decode FILE",
		Short: "Name what messages say in a capture",
		Long: `Read a capture, pcap or pcapng, and print what is said in the protocol of messages:
hellos, control messages, frames with their records, and the READs and WRITEs of
rendezvous, with the time since the first packet, the addresses and the queue pair it
goes to.

A line that begins with "perhaps" is of a connection whose beginning is not in the
capture. "(again)" was sent before.`,
		Example: `  xroce demo --capture demo.pcapng && xroce msg decode demo.pcapng
  tcpdump -i eth0 -w - udp port 4791 | xroce msg decode --short -`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().BoolVar(&short, "short", false, "leave out addresses, keys, tags and counts")
	return a.command(c, func(_ context.Context, args []string) error {
		in := io.Reader(os.Stdin)
		if args[0] != "-" {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			in = file
		}
		if err := a.decodeMessages(in, short); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return nil
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
func (a *app) decodeMessages(in io.Reader, short bool) error {
	source, err := openCapture(in)
	if err != nil {
		return err
	}
	var (
		d     dissect.Decoder
		m     dissect.Message
		p     wire.Packet
		first time.Time
	)
	list := []decodedMessage{}
	for n := 1; ; n++ {
		data, info, readErr := source.ReadPacketData()
		if readErr != nil {
			// A pcapng file that is cut off is said to end.
			if !errors.Is(readErr, io.EOF) {
				err = fmt.Errorf("packet %d: %w", n, readErr)
			}
			break
		}
		if n == 1 {
			first = info.Timestamp
		}
		if p.Decode(data, nil) != wire.OK || !d.Decode(&p, &m) {
			continue
		}
		line := decodedMessage{
			Packet: n, Seconds: info.Timestamp.Sub(first).Seconds(), Src: m.Src.Addr().String(),
			Dst: m.Dst.Addr().String(), DestQP: m.DestQP, Text: m.String(),
		}
		if short {
			line.Text = m.Short()
		}
		if a.json {
			list = append(list, line)
			continue
		}
		a.printf("%6d %10.6f %s > %s 0x%06x %s\n", line.Packet, line.Seconds, line.Src, line.Dst,
			line.DestQP, line.Text)
	}
	if a.json {
		return errors.Join(a.printJSON(list), err)
	}
	return err
}

// errNoCapture says that a file has no packets that could be read.
var errNoCapture = errors.New("no pcap or pcapng capture of an Ethernet")

// A guarded source is a reader of captures of which a file may be made that it does not survive:
// pcapgo divides by a resolution of time that a pcapng file says, for one.
type guarded struct{ gopacket.PacketDataSource }

// ReadPacketData implements gopacket.PacketDataSource.
func (g guarded) ReadPacketData() (data []byte, info gopacket.CaptureInfo, err error) {
	defer survive(&err)
	return g.PacketDataSource.ReadPacketData()
}

// survive makes an error of a panic of who reads a file.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errNoCapture, p)
	}
}

// openCapture reads the header of a capture in either format.
func openCapture(in io.Reader) (_ gopacket.PacketDataSource, err error) {
	defer survive(&err)
	const pcapng = 0x0a0d0d0a // the same in either byte order
	r := bufio.NewReader(in)
	magic, err := r.Peek(4)
	if err != nil {
		return nil, errNoCapture
	}
	if binary.BigEndian.Uint32(magic) == pcapng {
		source, err := pcapgo.NewNgReader(r, pcapgo.DefaultNgReaderOptions)
		if err != nil || source.LinkType() != layers.LinkTypeEthernet {
			return nil, errNoCapture
		}
		return guarded{source}, nil
	}
	source, err := pcapgo.NewReader(r)
	if err != nil || source.LinkType() != layers.LinkTypeEthernet {
		return nil, errNoCapture
	}
	return guarded{source}, nil
}
