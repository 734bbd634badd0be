package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xroce/encap"
)

// encapCommand has what there is to say of datagrams in the headers of InfiniBand.
func (a *app) encapCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "encap",
		Short: "Say how Ethernet and IP datagrams travel in the headers of InfiniBand",
		Long: `Say how Ethernet and IP datagrams travel in the headers of InfiniBand: raw packets of
the link layer, Ethernet and IP over InfiniBand, a virtual switch.`,
		Example: "  xroce encap list\n  xroce encap list --json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.encapListCommand())
	return c
}

func (a *app) encapListCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "list",
		Short: "List the formats",
		Long: `List the formats: what each travels in, the EtherType of its Ethernet frames, its
headers and trailers with their bytes, what it carries, and the longest datagram in
bytes: in one packet (of UD with a path MTU of 4096), in segments, and in a message of RC or
UC. No device is needed.`,
		Example: "  xroce encap list\n  xroce encap list --json",
		Args:    cobra.NoArgs,
	}, func(context.Context, []string) error {
		formats := encap.Formats()
		if a.json {
			list := make([]encapFormat, 0, len(formats))
			for i := range formats {
				list = append(list, newEncapFormat(&formats[i]))
			}
			return a.printJSON(list)
		}
		a.printf("%-9s %-10s %-9s %-30s %-24s %6s %8s %7s  %s\n", "format", "carrier", "EtherType",
			"headers and trailers", "carries", "packet", "segments", "message", "specified in")
		for i := range formats {
			f := newEncapFormat(&formats[i])
			a.printf("%-9s %-10s %-9s %-30s %-24s %6s %8s %7s  %s\n", f.Name,
				strings.Join(f.Carriers, ", "), f.EtherType,
				strings.Join(slices.Concat(f.Headers, f.Trailers), ", "),
				strings.Join(f.Carries, " "), bytesOrNone(f.Packet),
				bytesOrNone(f.Segments), bytesOrNone(f.Message), f.Source)
		}
		return nil
	})
}

// bytesOrNone is a number of bytes, of which none means that there is no such thing.
func bytesOrNone(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// An encapFormat is a row of the table of formats. Lengths are in bytes, 0 for what there is not.
type encapFormat struct {
	Name      string   `json:"name"`
	Carriers  []string `json:"carriers"`
	EtherType string   `json:"ethertype"`
	Headers   []string `json:"headers"`
	Trailers  []string `json:"trailers"`
	Carries   []string `json:"carries"`
	Packet    int      `json:"largest_in_packet"`
	Segments  int      `json:"largest_in_segments"`
	Message   int      `json:"largest_in_message"`
	Length    string   `json:"length_told_by"`
	Source    string   `json:"specified_in"`
}

func newEncapFormat(s *encap.Spec) encapFormat {
	f := encapFormat{
		Name: s.Name, Carriers: strings.Split(s.Carriers.String(), ", "), EtherType: "RoCE",
		Headers: s.Headers, Trailers: append([]string{}, s.Trailers...), Packet: s.Whole,
		Segments: s.Segmented, Message: s.Connected, Length: s.Length, Source: s.Source,
	}
	if s.EtherType != 0 {
		f.EtherType = fmt.Sprintf("0x%04x", s.EtherType)
	}
	for _, c := range s.Codes {
		f.Carries = append(f.Carries, c.Kind.String())
	}
	return f
}
