package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/message"
	rmsg "xroce/roce/msg"
)

func (a *app) msgExplainCommand() *cobra.Command {
	var machine machineFlags
	var size, mtu int
	var pieces []int
	c := &cobra.Command{
		Use:   "explain --size N",
		Short: "Say how a message would travel, why, and what that costs",
		Long: `Say how a message would travel over a new connection, why, and what that costs
both ends, and what each other protocol would cost, once all that it needs is made.
Two ends in memory send it to each other, so that nothing is said of them that they do
not do. Packets are counted without acknowledges. No device is needed.`,
		Example: `  xroce msg explain --size 20000
  xroce msg explain --iov 100,5000,100 --eager-limit 2000
  xroce msg explain --size 1048576 --protocol put --json`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.IntVarP(&size, "size", "s", 0, "bytes of the message")
	flags.IntSliceVar(&pieces, "iov", nil, "lengths of its pieces, which are its size")
	flags.IntVar(&mtu, "mtu", 1024, "path MTU: bytes that a packet carries")
	machine.register(flags)
	return a.command(c, func(context.Context, []string) error {
		sized := flags.Changed("size")
		sum := 0
		for _, n := range pieces {
			sum += n
		}
		switch {
		case !sized && pieces == nil:
			return usagef("which message? --size or --iov")
		case pieces == nil:
			pieces = []int{size}
		case sized && size != sum:
			return usagef("the pieces of --iov are %d bytes, not the %d of --size", sum, size)
		}
		config, err := machine.config()
		if err != nil {
			return err
		}
		e, err := message.Explain(config, pieces, mtu)
		switch {
		case errors.Is(err, message.ErrConfig), errors.Is(err, rmsg.ErrInvalid):
			return usagef("%v", err)
		case err != nil:
			return err
		case a.json:
			return a.printJSON(newExplainDocument(e))
		}
		a.sayExplanation(e)
		return nil
	})
}

// sayExplanation tells people how a message travels.
func (a *app) sayExplanation(e *message.Explanation) {
	c := &e.Config
	a.printf("A message of %d bytes in %s\n", e.Size, counted(len(e.Pieces), "piece"))
	large := make([]string, len(c.Large))
	for i, size := range c.Large {
		large[i] = strconv.Itoa(size)
	}
	a.printf("  %d slots of %d bytes; %d large ones each of %s bytes, by policy %s\n", c.Slots,
		c.EagerLimit, c.LargeSlots, strings.Join(large, ", "), msgPolicies[c.Policy])
	a.printf("  a connection registers %d bytes at each end\n", e.Connection.Allocated[0])
	defer a.sayForced(e)
	for i := range e.Plans {
		p := &e.Plans[i]
		which := fmt.Sprintf("Message %d", p.First)
		switch {
		case i == len(e.Plans)-1 && i > 0:
			which = fmt.Sprintf("From message %d on", p.First)
		case i == len(e.Plans)-1:
			which = "Every message"
		case p.Last > p.First:
			which = fmt.Sprintf("Messages %d to %d", p.First, p.Last)
		}
		a.printf("%s: %s, %s\n", which, p.Choice.Protocol, p.Choice.Why)
		for _, line := range costLines(&p.Cost) {
			a.printf("  %s\n", line)
		}
	}
}

// sayForced compares the protocols.
func (a *app) sayForced(e *message.Explanation) {
	if len(e.Forced) == 0 {
		a.printf("No comparison of protocols for more than %d bytes\n", message.MaxCompared)
		return
	}
	a.printf("By protocol, a message once all is made:\n")
	a.printf("  %-10s %-10s %9s %9s %12s %12s %6s\n", "forced", "goes by", "crossings", "packets",
		"copied[B]", "exposed[B]", "keys")
	for i := range e.Forced {
		p, c := message.Forced[i], &e.Forced[i].Cost
		a.printf("  %-10s %-10s %9d %9d %12d %12d %6d\n", p, c.Choice.Protocol, c.Ways, c.Packets,
			c.Copied, c.Exposed[0]+c.Exposed[1], c.Keys[0]+c.Keys[1])
	}
}

// counted is a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// costLines lists what a message costs.
func costLines(c *message.Cost) []string {
	lines := []string{fmt.Sprintf("there after %s", counted(c.Ways, "crossing")+" of the wire")}
	if c.Frames > 0 {
		lines = append(lines, fmt.Sprintf("%s of %d bytes in all", counted(c.Frames, "frame"),
			c.FrameBytes))
	}
	if c.Reads > 0 {
		lines = append(lines, fmt.Sprintf("%s of %d bytes in all", counted(c.Reads, "READ"),
			c.ReadBytes))
	}
	if c.Writes > 0 {
		lines = append(lines, fmt.Sprintf("%s of %d bytes in all", counted(c.Writes, "WRITE"),
			c.WriteBytes))
	}
	var control []string
	total := 0
	for _, name := range slices.Sorted(maps.Keys(c.Control)) {
		control = append(control, fmt.Sprintf("%d %s", c.Control[name], name))
		total += c.Control[name]
	}
	if total == 0 {
		lines = append(lines, "no control message")
	} else {
		lines = append(lines, fmt.Sprintf("%s: %s", counted(total, "control message"),
			strings.Join(control, ", ")))
	}
	lines = append(lines, fmt.Sprintf("%s, without acknowledges", counted(c.Packets, "packet")),
		fmt.Sprintf("%d bytes copied by processors", c.Copied))
	for i, end := range []string{"sender", "receiver"} {
		if n := c.Allocated[i]; n > 0 {
			lines = append(lines, fmt.Sprintf("%d bytes made and registered at the %s, to stay", n,
				end))
		}
		if n := c.Exposed[i]; n > 0 {
			lines = append(lines, fmt.Sprintf("%d bytes registered at the %s for this message, "+
				"%s", n, end, counted(c.Keys[i], "key")))
		}
	}
	return lines
}

// An explainDocument is what explain prints with --json. Protocol and Why are of the first
// message.
type explainDocument struct {
	Size       int         `json:"size"`
	Pieces     []int       `json:"pieces"`
	Protocol   string      `json:"protocol"`
	Why        string      `json:"why"`
	EagerLimit int         `json:"eager_limit"`
	Slots      int         `json:"slots"`
	Large      []int       `json:"large"`
	LargeSlots int         `json:"large_slots"`
	Policy     string      `json:"policy"`
	Connection endsJSON    `json:"connection_registered"`
	MTU        int         `json:"mtu"`
	Messages   []explained `json:"messages"`
	Forced     []explained `json:"by_protocol"` // once all is made, none of a long one
}

// endsJSON is bytes, or keys, of both ends.
type endsJSON struct {
	Sender   int `json:"sender"`
	Receiver int `json:"receiver"`
}

// explained is what messages cost, from the first to the last of those that were looked at.
type explained struct {
	First      int            `json:"first"`
	Last       int            `json:"last"`
	Forced     string         `json:"forced,omitempty"`
	Protocol   string         `json:"protocol"`
	Why        string         `json:"why"`
	Crossings  int            `json:"crossings"`
	Frames     int            `json:"frames"`
	FrameBytes int            `json:"frame_bytes"`
	Reads      int            `json:"reads"`
	ReadBytes  int            `json:"read_bytes"`
	Writes     int            `json:"writes"`
	WriteBytes int            `json:"write_bytes"`
	Control    map[string]int `json:"control"`
	Packets    int            `json:"packets"`
	Copied     int            `json:"copied_bytes"`
	Made       endsJSON       `json:"made_and_registered"`
	Registered endsJSON       `json:"registered_for_message"`
	Keys       endsJSON       `json:"keys_for_message"`
}

func newExplainDocument(e *message.Explanation) explainDocument {
	c := &e.Config
	d := explainDocument{
		Size: e.Size, Pieces: e.Pieces, EagerLimit: c.EagerLimit, Slots: c.Slots, Large: c.Large,
		LargeSlots: c.LargeSlots, Policy: msgPolicies[c.Policy],
		Connection: endsJSON{e.Connection.Allocated[0], e.Connection.Allocated[1]},
		MTU:        e.MTU,
		Forced:     []explained{},
		Protocol:   e.Plans[0].Choice.Protocol.String(), Why: e.Plans[0].Choice.Why.String(),
	}
	for i := range e.Plans {
		d.Messages = append(d.Messages, newExplained(&e.Plans[i]))
	}
	for i := range e.Forced {
		p := newExplained(&e.Forced[i])
		p.Forced = message.Forced[i].String()
		d.Forced = append(d.Forced, p)
	}
	return d
}

func newExplained(p *message.Plan) explained {
	ends := func(pair [2]int) endsJSON { return endsJSON{pair[0], pair[1]} }
	return explained{
		First: p.First, Last: p.Last, Protocol: p.Choice.Protocol.String(),
		Why: p.Choice.Why.String(), Crossings: p.Ways, Frames: p.Frames,
		FrameBytes: p.FrameBytes, Reads: p.Reads, ReadBytes: p.ReadBytes, Writes: p.Writes,
		WriteBytes: p.WriteBytes, Control: p.Control, Packets: p.Packets, Copied: p.Copied,
		Made: ends(p.Allocated), Registered: ends(p.Exposed), Keys: ends(p.Keys),
	}
}
