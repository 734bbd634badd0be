package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"xroce/roce"
)

// allExtensions are those that two of our own ends use unless told otherwise.
const allExtensions = roce.ExtSelectiveRepeat | roce.ExtReorderWindow | roce.ExtPiggybackAck

// extensionNames are what --extensions takes.
var extensionNames = []struct {
	name  string
	value roce.Extensions
}{
	{"all", allExtensions},
	{"selective", roce.ExtSelectiveRepeat},
	{"reorder", roce.ExtReorderWindow},
	{"piggyback", roce.ExtPiggybackAck},
	{"none", 0},
}

// An extensionsFlag says which extensions of the transport an end offers to
// another of ours. A connection has those that both ends offer.
type extensionsFlag struct{ roce.Extensions }

func newExtensionsFlag() *extensionsFlag { return &extensionsFlag{allExtensions} }

func (f *extensionsFlag) register(flags *pflag.FlagSet) {
	flags.Var(f, "extensions", "what to offer beyond the standard: all, none, selective "+
		"(repeat only what was lost), reorder (late is not lost) or piggyback (acknowledges "+
		"ride on requests)")
}

// Set implements pflag.Value.
func (f *extensionsFlag) Set(name string) error {
	var names []string
	for _, e := range extensionNames {
		if e.name == name {
			f.Extensions = e.value
			return nil
		}
		names = append(names, e.name)
	}
	return fmt.Errorf("there are %s", strings.Join(names, ", "))
}

// String implements pflag.Value.
func (f *extensionsFlag) String() string {
	for _, e := range extensionNames {
		if e.value == f.Extensions {
			return e.name
		}
	}
	return f.Extensions.String()
}

// Type implements pflag.Value: what the help calls the argument.
func (*extensionsFlag) Type() string { return "WHICH" }
