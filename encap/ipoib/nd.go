package ipoib

// The options of neighbour discovery that have a hardware address (RFC 4861 section 4.6.1).
const (
	SourceLinkLayer = 1
	TargetLinkLayer = 2
)

// LinkLayerLen is the length of such an option (RFC 4391 section 9.3): type, length in units of 8
// bytes, two bytes of zeros, and the hardware address.
const LinkLayerLen = 24

const (
	optionUnit  = 8
	optionsHead = 2
	linkOffAddr = 4
)

// PutLinkLayer writes an option of a type into the first LinkLayerLen bytes of b.
func PutLinkLayer(b []byte, typ uint8, a Address) {
	b[0], b[1], b[2], b[3] = typ, LinkLayerLen/optionUnit, 0, 0
	a.Put(b[linkOffAddr:])
}

// FindLinkLayer finds the first option of a type among those of a message of neighbour discovery,
// and reports whether there is one. The error is ErrShort when an option does not end within the
// message, and ErrFormat for an option without length, or one of this type that has no hardware
// address of IPoIB: such a message is to be dropped (RFC 4861 section 6.1).
func FindLinkLayer(options []byte, typ uint8) (a Address, found bool, err error) {
	for b := options; len(b) > 0; {
		if len(b) < optionsHead {
			return Address{}, false, ErrShort
		}
		n := optionUnit * int(b[1])
		switch {
		case n == 0:
			return Address{}, false, ErrFormat
		case n > len(b):
			return Address{}, false, ErrShort
		case b[0] == typ && n != LinkLayerLen:
			return Address{}, false, ErrFormat
		case b[0] == typ && !found:
			if a, err = ParseAddress(b[linkOffAddr:n]); err != nil {
				return Address{}, false, err
			}
			found = true
		}
		b = b[n:]
	}
	return a, found, nil
}
