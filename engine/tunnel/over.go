package tunnel

import (
	"fmt"

	"xroce/encap"
	"xroce/roce"
)

// Over is what a tunnel travels over.
type Over uint8

// What there is.
const (
	OverUD     Over = iota // datagrams: what is lost stays lost
	OverRC                 // a reliable connection each way
	OverUC                 // an unreliable connection each way: what is lost stays lost
	OverNative             // raw packets of InfiniBand in Ethernet frames, on one link
)

var overNames = [...]string{OverUD: "ud", OverRC: "rc", OverUC: "uc", OverNative: "native"}

// String is ud, rc, uc or native.
func (o Over) String() string {
	if int(o) < len(overNames) {
		return overNames[o]
	}
	return fmt.Sprintf("Over(%d)", uint8(o))
}

// ParseOver is the inverse of String.
func ParseOver(s string) (Over, error) {
	for o, name := range overNames {
		if name == s {
			return Over(o), nil
		}
	}
	return 0, fmt.Errorf("tunnel: nothing to travel over is called %q: there are ud, rc, uc and "+
		"native", s)
}

// connected reports whether each lane has a connection to each peer.
func (o Over) connected() bool { return o == OverRC || o == OverUC }

// qpType is that of the queue pairs of connections.
func (o Over) qpType() roce.QPType {
	if o == OverUC {
		return roce.TypeUC
	}
	return roce.TypeRC
}

// carrier is the same in the table of formats.
func (o Over) carrier() encap.Carrier {
	switch o {
	case OverRC, OverUC:
		return encap.Connections
	case OverNative:
		return encap.Native
	}
	return encap.Datagrams
}
