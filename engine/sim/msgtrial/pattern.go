package msgtrial

import (
	"bytes"

	"xroce/engine/sim/campaign"
)

// pattern is that of a key, such as the number of a message.
func pattern(key uint64) campaign.Pattern {
	return campaign.Pattern((key + 1) * 0x9e3779b97f4a7c15)
}

// blank is what memory holds that nobody may write to.
const blank = 0xa5

// blanked reports whether bytes were not touched.
func blanked(b []byte) bool {
	return len(b) == 0 || b[0] == blank && bytes.Equal(b[1:], b[:len(b)-1])
}

// wipe makes memory such that nobody may write to it.
func wipe(b []byte) {
	if len(b) > 0 {
		b[0] = blank
	}
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
