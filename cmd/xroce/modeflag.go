package main

import (
	"github.com/spf13/pflag"

	"xroce/engine"
)

// The ways in which a device is driven, as --mode names them.
const (
	modeDirect     = "direct"
	modeBusy       = "busy"
	modeBackground = "background"
)

// A modeFlag says how the device of a measurement is driven.
type modeFlag struct{ name string }

func (f *modeFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "mode", "", "who moves packets: direct (who polls), busy (a loop "+
		"that never sleeps, and who polls) or background (one that sleeps; default the first "+
		"that fits)")
}

// apply sets the mode in the options of a device, or the usual one, which is direct where it can
// be. It returns the name of the mode.
func (f *modeFlag) apply(o *engine.Options, usual, possible bool) (string, error) {
	switch {
	case f.name == modeDirect && !possible:
		return "", usagef("--mode direct is for an end that polls: not for -e or -R")
	case f.name == modeDirect && o.Busy, f.name == modeBackground && o.Busy:
		return "", usagef("--busy and --mode %s exclude each other", f.name)
	case f.name == modeDirect, f.name == "" && usual && !o.Busy:
		o.Direct = true
		return modeDirect, nil
	case f.name == modeBusy, f.name == "" && o.Busy:
		o.Busy = true
		return modeBusy, nil
	case f.name == modeBackground, f.name == "":
		return modeBackground, nil
	}
	return "", usagef("no mode %q: there are direct, busy and background", f.name)
}
