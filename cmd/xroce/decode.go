package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/decode"
	"xroce/engine/capture/read"
)

// decodeCommand prints the packets of a capture.
func (a *app) decodeCommand() *cobra.Command {
	var (
		details bool
		count   int
	)
	c := &cobra.Command{
		Use:   "decode FILE",
		Short: "Print the packets of a capture, a line each",
		Long: `Read a capture of any program and print its packets, a line each: number, seconds
since the first, from where to where, protocol, length, and what it is. Of packets of RoCE that
is the opcode, the destination queue pair, the PSN, what the extended headers have, and
whether the ICRC is right: "ok", "BAD", or "cut" where the capture kept too little. In
brackets is what the payload says: messages of the connection manager, those of xroce
itself, encapsulated datagrams. Behind a "#" is the comment of the capture.

FILE is pcap (either byte order, microseconds, nanoseconds or modified), pcapng or ERF, also
in gzip or zstd; "-" is stdin. RoCE v1, v2 and native InfiniBand are found in Ethernet, Linux
cooked and raw IP captures, behind VLAN tags, VXLAN, GRE and ERSPAN. A file that is damaged
or ends in the middle is read to there; the exit code is then 1.

With -V every field of every header is named, most as in Wireshark, where that name
is a filter. With --json each packet is an object on a line of its own.`,
		Example: `  xroce decode capture.pcapng
  xroce decode -V -c 1 capture.pcap.gz
  tcpdump -i eth0 -w - udp port 4791 | xroce decode -
  xroce decode --json capture.pcapng | jq 'select(.icrc == "BAD")'`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().BoolVarP(&details, "details", "V", false, "name every field of every header")
	c.Flags().IntVarP(&count, "count", "c", 0, "stop after so many packets, 0 for none")
	return a.command(c, func(ctx context.Context, args []string) error {
		if count < 0 {
			return usagef("--count %d: it cannot be negative", count)
		}
		form := decode.Lines
		switch {
		case a.json:
			form = decode.JSON
		case details:
			form = decode.Details
		}
		return a.leave(ctx, func() error { return a.decode(ctx, args[0], form, count) })
	})
}

// decodeBuffer is how many bytes of output are written at once, while more input is there.
const decodeBuffer = 64 << 10

// decode prints the packets of a capture in a form.
func (a *app) decode(ctx context.Context, name string, form decode.Form, count int) error {
	in, err := a.openCaptureInput(name, count)
	if err != nil {
		return err
	}
	defer in.close()
	printer := decode.New(form)
	lines := make([]byte, 0, 2*decodeBuffer)
	err = in.each(ctx, func(p *read.Packet) error {
		lines = printer.Append(lines, p)
		// Where no more packets are there somebody may be looking.
		if len(lines) < decodeBuffer && !in.reader.Waiting() {
			return nil
		}
		_, err := a.stdout.Write(lines)
		lines = lines[:0]
		return err
	})
	if len(lines) == 0 {
		return err
	}
	_, last := a.stdout.Write(lines)
	return errors.Join(err, last)
}
