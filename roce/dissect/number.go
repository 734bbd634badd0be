package dissect

import (
	"math/bits"
	"strconv"
)

const digits = "0123456789abcdef"

// pairs are the hex digits of each byte.
var pairs = func() (t [256][2]byte) {
	for i := range t {
		t[i] = [2]byte{digits[i>>4], digits[i&0xf]}
	}
	return t
}()

// appendHex adds a number with at least as many digits as width says, which is at most 16.
func appendHex(b []byte, v uint64, width int) []byte {
	var text [16]byte
	first := len(text) - max((bits.Len64(v)+3)/4, width, 1)
	for i := len(text) - 2; i > first-2; i -= 2 {
		text[i], text[i+1] = pairs[v&0xff][0], pairs[v&0xff][1]
		v >>= 8
	}
	return append(b, text[first:]...)
}

// appendHex24 adds the six digits of a number of 24 bits.
func appendHex24(b []byte, v uint32) []byte {
	hi, mid, lo := &pairs[v>>16&0xff], &pairs[v>>8&0xff], &pairs[v&0xff]
	return append(b, hi[0], hi[1], mid[0], mid[1], lo[0], lo[1])
}

// decimals are the digits of each number below 100.
var decimals = func() (t [100][2]byte) {
	for i := range t {
		t[i] = [2]byte{digits[i/10], digits[i%10]}
	}
	return t
}()

// AppendDecimal adds a number as strconv.AppendUint does, in less time: in a line of a packet there
// are several, most of them of one to five digits.
func AppendDecimal(b []byte, v uint64) []byte {
	switch {
	case v < 10:
		return append(b, '0'+byte(v))
	case v < 100:
		d := &decimals[v]
		return append(b, d[0], d[1])
	case v < 10000:
		hi, lo := &decimals[v/100], &decimals[v%100]
		if v < 1000 {
			return append(b, hi[1], lo[0], lo[1])
		}
		return append(b, hi[0], hi[1], lo[0], lo[1])
	case v < 100_000_000:
		return AppendZeros(AppendDecimal(b, v/10000), uint32(v%10000), 4)
	}
	return strconv.AppendUint(b, v, 10)
}

// AppendZeros adds a number below 10^width with zeros before it, width digits in all, of which
// there are nine at most.
func AppendZeros(b []byte, v uint32, width int) []byte {
	var text [10]byte
	first := len(text) - width
	for i := len(text) - 2; i > first-2; i -= 2 {
		d := &decimals[v%100]
		text[i], text[i+1] = d[0], d[1]
		v /= 100
	}
	return append(b, text[first:]...)
}
