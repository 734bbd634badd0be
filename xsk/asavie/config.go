package asavie

import (
	"errors"
	"fmt"

	"xroce/xsk"
)

// ErrReopen says that the process had a socket of this package on the queue
// before. The library never gives a queue back.
var ErrReopen = errors.New("asavie: queue was opened before in this process, " +
	"and github.com/asavie/xdp does not give queues back: use another process")

// Defaults of Config.
const (
	DefaultRxFrames = 2048
	DefaultTxFrames = 512
)

const (
	chunkSize = 4096
	// rxHeadroom is what the kernel keeps in front of a received frame.
	rxHeadroom = 256
	// headerLen is what a frame has beside the MTU's bytes: Ethernet and a VLAN tag.
	headerLen = 18
	maxFrames = 1 << 16
)

// Config says what socket Open makes. Zero fields mean their defaults, except for
// Interface and Ifindex, of which one is required.
type Config struct {
	Interface string // interface name
	Ifindex   int    // interface index; used when Interface is empty
	Queue     int    // queue number of the device
	RxFrames  int    // receive frames; default DefaultRxFrames
	TxFrames  int    // transmit frames; default DefaultTxFrames
	Mode      xsk.Mode
}

// withDefaults returns the configuration with every zero field filled in.
func (c Config) withDefaults() Config {
	if c.RxFrames == 0 {
		c.RxFrames = DefaultRxFrames
	}
	if c.TxFrames == 0 {
		c.TxFrames = DefaultTxFrames
	}
	return c
}

// Validate tells what is wrong with the configuration, defaults applied.
func (c Config) Validate() error {
	c = c.withDefaults()
	if c.Interface == "" && c.Ifindex <= 0 {
		return errors.New("asavie: no interface: neither Interface nor Ifindex is set")
	}
	for _, f := range []struct {
		name         string
		v, low, high int
	}{
		{"Queue", c.Queue, 0, 1 << 16},
		{"RxFrames", c.RxFrames, 1, maxFrames},
		{"TxFrames", c.TxFrames, 1, maxFrames},
		{"Mode", int(c.Mode), 0, int(xsk.ModeZeroCopy)},
	} {
		if f.v < f.low || f.v > f.high {
			return fmt.Errorf("asavie: %s is %d, want %d to %d", f.name, f.v, f.low, f.high)
		}
	}
	return nil
}
