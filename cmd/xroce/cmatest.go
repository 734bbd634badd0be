package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/rdmacm"
	"xroce/roce"
)

// cmatestFlags are those that ucmatose and udaddy share.
type cmatestFlags struct {
	conversationFlags
	server, bind, format, space string
	connections, count, size    int
	tos                         uint8
}

// register adds the flags. spaces are the port spaces of the original, the first is
// what there is.
func (f *cmatestFlags) register(flags *pflag.FlagSet, spaces string) {
	f.conversationFlags.register(flags)
	flags.StringVarP(&f.server, "server", "s", "", "address of the server: be its client")
	flags.StringVarP(&f.bind, "bind", "b", "", "our address (default: any)")
	flags.StringVarP(&f.format, "address-format", "f", "name", "form of addresses: name, ip, ipv6")
	flags.StringVarP(&f.space, "port-space", "P", spaces, "port space")
	flags.IntVarP(&f.connections, "connections", "c", 1, "connections")
	flags.IntVarP(&f.count, "count", "C", rdmacm.DefaultCount, "messages each way")
	flags.IntVarP(&f.size, "size", "S", rdmacm.DefaultSize, "bytes of a message")
	flags.Uint8VarP(&f.tos, "tos", "t", 0, "type of service: traffic class, DSCP and ECN")
}

// check refuses what is out of range or what this end cannot do.
func (f *cmatestFlags) check(space string, maxSize int) error {
	f.format, f.space = strings.ToLower(f.format), strings.ToLower(f.space)
	switch {
	case strings.HasPrefix(f.format, "gid"):
		return exitError{exitUnsupported, errors.New("-f gid: addresses are those of IP")}
	case !strings.HasPrefix(f.format, "ip") && !strings.HasPrefix(f.format, "name"):
		return usagef("-f %s: there are name, ip and ipv6", f.format)
	case f.space == "ib" || f.space == "ipoib":
		err := fmt.Errorf("-P %s: only port space %s is there", f.space, space)
		return exitError{exitUnsupported, err}
	case f.space != space:
		return usagef("-P %s: there is %s", f.space, space)
	case f.connections < 1 || f.connections > rdmacm.MaxConnections:
		return usagef("-c %d is not in 1..%d", f.connections, rdmacm.MaxConnections)
	case f.count < 0 || f.count > roce.MaxWR:
		return usagef("-C %d is not in 0..%d", f.count, roce.MaxWR)
	case f.size < 0 || f.size > maxSize:
		return usagef("-S %d is not in 0..%d", f.size, maxSize)
	}
	if f.size == 0 {
		f.count = 0 // as the original has it
	}
	return nil
}

// address is where to go, or to listen at; source is the address to go from.
func (f *cmatestFlags) address(
	ctx context.Context, port int,
) (at netip.AddrPort, source netip.Addr, err error) {
	if f.server == "" {
		at, err = addressOf(ctx, cmp.Or(f.bind, anywhere), port)
		return at, source, err
	}
	bound, err := addressOf(ctx, f.bind, port)
	if err != nil {
		return at, source, err
	}
	at, err = addressOf(ctx, f.server, port)
	return at, bound.Addr(), err
}

// report is what is known before.
func (f *cmatestFlags) report(tool string, at netip.AddrPort) conversationReport {
	return conversationReport{
		Tool: tool, Role: role(f.server == ""), Address: at.String(), Size: f.size,
	}
}
