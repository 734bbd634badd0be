package inner

import "encoding/binary"

// Options and flags of TCP (RFC 9293 3.2).
const (
	flagSYN   = 0x02
	optionEnd = 0
	optionNOP = 1
	optionMSS = 2
	mssLen    = 4
)

// ClampMSS lowers the maximum segment size that a SYN offers to what has room in IP packets of
// mtu bytes, so that hosts behind the tunnel with a larger MTU send nothing that it cannot
// carry. It reports whether it changed something. The checksum is corrected, unless it is partial,
// which is to be completed later (NeedsChecksum).
func (h *Headers) ClampMSS(b []byte, mtu int, partial bool) bool {
	at, n := h.tcp(b)
	if at == 0 || b[at+tcpFlags]&flagSYN == 0 {
		return false
	}
	most := max(mtu-(at-h.L3)-tcpLen, minSegment)
	options := b[at+tcpLen : at+n]
	for len(options) > 0 {
		switch {
		case options[0] == optionEnd:
			return false
		case options[0] == optionNOP:
			options = options[1:]
			continue
		case len(options) < 2 || int(options[1]) < 2 || int(options[1]) > len(options):
			return false // it is broken
		case options[0] == optionMSS && options[1] == mssLen:
			old := binary.BigEndian.Uint16(options[2:])
			if int(old) <= most {
				return false
			}
			binary.BigEndian.PutUint16(options[2:], uint16(most))
			offset := at + n - len(options) + 2
			if !partial {
				correct(b[at+tcpChecksum:], offset-at, old, uint16(most))
			}
			return true
		}
		options = options[options[1]:]
	}
	return false
}

// correct corrects a checksum for two bytes that changed, which may lie across two words.
func correct(check []byte, offset int, old, new uint16) {
	if offset%2 != 0 {
		old, new = old<<8|old>>8, new<<8|new>>8
	}
	binary.BigEndian.PutUint16(check, update(binary.BigEndian.Uint16(check), old, new))
}
