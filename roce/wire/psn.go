package wire

// PSN is a packet sequence number: 24 bits, modulo 2^24 (IBA 9.7). The upper
// eight bits of a valid PSN are zero; every method keeps them so.
type PSN uint32

// Add is the PSN n packets later.
func (p PSN) Add(n uint32) PSN { return (p + PSN(n)) & max24 }

// Sub is the PSN n packets earlier.
func (p PSN) Sub(n uint32) PSN { return (p - PSN(n)) & max24 }

// Diff is the signed distance from q to p, -2^23 to 2^23-1: positive when p is
// after q.
func (p PSN) Diff(q PSN) int32 { return int32(uint32(p-q)<<8) >> 8 }

// Before reports whether p comes before q. A distance of exactly 2^23 counts as
// before, in both directions; windows must stay below it.
func (p PSN) Before(q PSN) bool { return p.Diff(q) < 0 }

// After reports whether p comes after q.
func (p PSN) After(q PSN) bool { return p.Diff(q) > 0 }

// InWindow reports whether p is one of the n PSNs that start with first.
func (p PSN) InWindow(first PSN, n uint32) bool { return uint32(p-first)&max24 < n }
