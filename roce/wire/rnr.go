package wire

// rnrTable is the time in nanoseconds of each RNR timer code (IBA 9.7.5.2.8).
var rnrTable = [32]int64{
	655_360_000, 10_000, 20_000, 30_000, 40_000, 60_000, 80_000, 120_000,
	160_000, 240_000, 320_000, 480_000, 640_000, 960_000, 1_280_000, 1_920_000,
	2_560_000, 3_840_000, 5_120_000, 7_680_000, 10_240_000, 15_360_000, 20_480_000, 30_720_000,
	40_960_000, 61_440_000, 81_920_000, 122_880_000,
	163_840_000, 245_760_000, 327_680_000, 491_520_000,
}

// RNRTimerNanos is the time in nanoseconds that a requester waits after an RNR
// NAK with this timer code. Only the low five bits count.
func RNRTimerNanos(code uint8) int64 { return rnrTable[code&syndromeCodeMask] }

// RNRTimerCode is the code of the shortest time that is not below ns
// nanoseconds. Anything above the longest time gives the longest, code 0.
func RNRTimerCode(ns int64) uint8 {
	for code := 1; code < len(rnrTable); code++ {
		if rnrTable[code] >= ns {
			return uint8(code)
		}
	}
	return 0
}
