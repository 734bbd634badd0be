package gen

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"xroce/roce/wire"
)

// Mutation is what is wrong with a packet of a Fuzzer.
type Mutation uint8

// The mutations. All but MutateBits have an ICRC that is right, so that they get further than
// its check.
const (
	MutateNothing Mutation = iota // a packet that may be right, to a QP that may exist
	MutateOpcode                  // any of the 256
	MutateHeaders                 // extended headers of bytes by chance
	MutateLength                  // ends early, or has more than its headers allow
	MutatePad                     // padding and version of the transport by chance
	MutateReach                   // addresses and lengths at the limits of 64 and 32 bits
	MutatePKey                    // another partition
	MutateMAD                     // bytes by chance for the queue pairs of management, 0 and 1
	MutateClaims                  // lengths of IP and UDP that the frame does not have
	MutateBits                    // bits that changed on the way
	NumMutations
)

var mutationNames = [NumMutations]string{
	"nothing", "opcode", "headers", "length", "pad", "reach", "pkey", "mad", "claims", "bits",
}

// String is the name of the mutation.
func (m Mutation) String() string {
	if m < NumMutations {
		return mutationNames[m]
	}
	return fmt.Sprintf("mutation(%d)", uint8(m))
}

// A Fuzzer makes malformed RoCE packets. The packet of a number is the same for the same seed,
// path and QPs, whatever was made before. One caller at a time.
type Fuzzer struct {
	template wire.Template
	net      int // offset of the network header
	ipv6     bool
	seed     uint64
	qps      []uint32
	maxFrame int
	next     uint64
	made     [NumMutations]uint64
}

// fuzzRoom is the longest payload of a packet.
const fuzzRoom = 512

// NewFuzzer makes one, whose first packet is that of a number. qps are those at the peer that
// are aimed at, beside others by chance.
func NewFuzzer(p wire.Path, maxFrame int, seed, first uint64, qps []uint32) (*Fuzzer, error) {
	f := &Fuzzer{seed: seed, next: first, qps: qps, maxFrame: maxFrame, net: ethLen}
	p.Framing = framing(&p)
	f.ipv6 = p.Framing != wire.FramingV2IPv4
	f.net += p.Tags.Len()
	if err := f.template.Init(p); err != nil {
		return nil, err
	}
	if need := f.template.FrameLen(wire.BTHLen + 2*fuzzRoom); need > maxFrame {
		return nil, wrong("packets have up to %d bytes, and the interface takes %d", need, maxFrame)
	}
	return f, nil
}

// Made is how many packets had each mutation.
func (f *Fuzzer) Made() [NumMutations]uint64 { return f.made }

// Number is that of the next packet.
func (f *Fuzzer) Number() uint64 { return f.next }

// Err is nil: every packet can be made.
func (f *Fuzzer) Err() error { return nil }

// Next writes the next packet and returns its length.
func (f *Fuzzer) Next(frame []byte, _ int64) int {
	var pcg rand.PCG
	pcg.Seed(f.seed, f.next)
	f.next++
	r := rand.New(&pcg)
	m := Mutation(r.IntN(int(NumMutations)))
	f.made[m]++
	n := f.transport(frame[f.template.Len():], m, r)
	frame = frame[:f.template.Seal(frame, n, uint16(f.next))]
	switch m {
	case MutateBits:
		for range 1 + r.IntN(8) {
			i := f.net + r.IntN(len(frame)-f.net)
			frame[i] ^= 1 << r.IntN(8)
		}
	case MutateClaims:
		f.claim(frame, r)
	}
	return len(frame)
}

// transport writes from the BTH on, and returns how many bytes, a multiple of 4.
func (f *Fuzzer) transport(b []byte, m Mutation, r *rand.Rand) int {
	h := wire.BTH{
		Opcode: f.opcode(m, r), M: true, PKey: wire.DefaultPKey, DestQP: f.qp(m, r),
		PSN: wire.PSN(r.Uint32() & 0xffffff), AckReq: r.IntN(2) == 0, SE: r.IntN(4) == 0,
	}
	spec := h.Opcode.Spec()
	switch m {
	case MutatePad:
		h.PadCnt, h.TVer = uint8(r.IntN(4)), uint8(r.IntN(16))
	case MutatePKey:
		h.PKey = uint16(r.Uint32())
	}
	h.Put(b)
	headers := int(spec.HeaderLen)
	n := headers + 4*r.IntN(fuzzRoom/4)
	if m == MutateLength {
		n = 4 * r.IntN(fuzzRoom/2)
	}
	body := b[wire.BTHLen : wire.BTHLen+n]
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	if m != MutateHeaders && m != MutateLength && m != MutateOpcode {
		f.reth(b[:wire.BTHLen+n], spec, m, n-headers, r)
	}
	return wire.BTHLen + n
}

// reth makes the RETH one that a peer may look further at.
func (f *Fuzzer) reth(b []byte, spec *wire.OpcodeSpec, m Mutation, payload int, r *rand.Rand) {
	if !spec.Has(wire.HasRETH) {
		return
	}
	h := wire.RETH{VA: r.Uint64(), RKey: r.Uint32(), DMALen: uint32(payload)}
	if m == MutateReach {
		limits := [...]uint64{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1}
		h.VA = limits[r.IntN(len(limits))] - uint64(r.IntN(3))
		h.DMALen = uint32(limits[r.IntN(len(limits))])
	}
	h.Put(b[spec.Offsets[wire.HeaderRETH]:])
}

// opcode chooses one: any, that of datagrams, or one that somebody defined.
func (f *Fuzzer) opcode(m Mutation, r *rand.Rand) wire.Opcode {
	switch m {
	case MutateOpcode:
		return wire.Opcode(r.Uint32())
	case MutateMAD:
		return wire.UDSendOnly
	}
	for {
		if op := wire.Opcode(r.Uint32()); op.Spec().Known {
			return op
		}
	}
}

// qp chooses a destination.
func (f *Fuzzer) qp(m Mutation, r *rand.Rand) uint32 {
	switch {
	case m == MutateMAD:
		return uint32(r.IntN(2))
	case len(f.qps) > 0 && r.IntN(8) > 0:
		return f.qps[r.IntN(len(f.qps))]
	}
	return r.Uint32() & 0xffffff
}

// claim makes one of the lengths of a frame wrong; the checksum of IPv4 is right.
func (f *Fuzzer) claim(frame []byte, r *rand.Rand) {
	lie := uint16(r.Uint32())
	ip := frame[f.net:]
	switch {
	case r.IntN(2) == 0:
		udp := f.template.Len() - udpLen - f.net
		binary.BigEndian.PutUint16(ip[udp+4:], lie)
	case f.ipv6:
		binary.BigEndian.PutUint16(ip[4:], lie)
	default:
		binary.BigEndian.PutUint16(ip[2:], lie)
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^fold16(sum16(ip[:ipv4Len])))
	}
}
