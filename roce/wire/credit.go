package wire

// creditTable is the number of receive work requests each credit code stands
// for (IBA 9.7.7.2).
var creditTable = [31]int32{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// CreditInvalid is the credit code that says that credits are not counted.
const CreditInvalid = 31

// Credits is the number of receive work requests that a credit code announces.
// ok is false for CreditInvalid and for anything that is not a code.
func Credits(code uint8) (n int, ok bool) {
	if int(code) >= len(creditTable) {
		return 0, false
	}
	return int(creditTable[code]), true
}

// CreditCode is the largest code that does not announce more than free receive
// work requests. Below zero counts as zero.
func CreditCode(free int) uint8 {
	code := uint8(0)
	for i, n := range creditTable {
		if int(n) > free {
			break
		}
		code = uint8(i)
	}
	return code
}
