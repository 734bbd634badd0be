package roce_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// newNoise returns a source of noise with a seed.
func newNoise(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 77)) }

// standAt is newStand with these PSNs.
func standAt(tb testing.TB, k kind, state roce.State, expected, first wire.PSN) *stand {
	tb.Helper()
	k.psn = &[2]wire.PSN{expected, first}
	return newStand(tb, k, state)
}

// rewrite changes the PSN of a frame and makes its ICRC right.
func (s *stand) rewrite(frame []byte, psn wire.PSN) {
	b := frame[s.path.Len():]
	wire.SetBTHPSN(b, psn)
	s.path.Seal(frame, len(b)-wire.ICRCLen, 1)
}

// corners are numbers at which arithmetic goes wrong.
var corners = []uint64{
	0, 1, 7, 8, 255, 256, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 1,
	1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 8, 1<<64 - 1,
}

// pick is one of a list.
func pick[T any](noise *rand.Rand, from []T) T { return from[noise.IntN(len(from))] }

// noisy is a frame for the QP of a random opcode of its service, with headers of
// noise, random lengths and a PSN near the right one.
func (s *stand) noisy(noise *rand.Rand) []byte {
	var ops []wire.Opcode
	for op, spec := range wire.Opcodes() {
		if spec.Service == s.kind.service() || op == wire.SelectiveAck {
			ops = append(ops, op)
		}
	}
	p := s.target(pick(noise, ops))
	p.PSN = p.PSN.Add(uint32(noise.IntN(6)) - 2)
	p.SE, p.AckReq = noise.IntN(2) == 0, noise.IntN(2) == 0
	if noise.IntN(4) == 0 {
		p.Payload = make([]byte, noise.IntN(260))
	}
	if p.Opcode.Spec().Payload == wire.PayloadNone {
		p.Payload = nil
	}
	p.RETH.DMALen = uint32(len(p.Payload))
	area := s.areas[noise.IntN(areaCount)]
	p.RETH.VA, p.RETH.RKey = area.Addr(), area.RKey()
	p.Atomic.VA, p.Atomic.RKey = area.Addr(), area.RKey()
	switch noise.IntN(6) {
	case 0:
		p.RETH.DMALen = uint32(pick(noise, corners))
	case 1:
		p.RETH.VA, p.Atomic.VA = pick(noise, corners), pick(noise, corners)
	case 2:
		p.RETH.VA += pick(noise, corners)
	case 3:
		p.RETH.RKey ^= 1 << noise.IntN(32)
	}
	p.AETH.Syndrome = pick(noise, []wire.Syndrome{0x1f, 0, 1, 0x20, 0x3f, 0x40, 0x60, 0x61, 0xff})
	if noise.IntN(3) != 0 {
		p.AETH.Syndrome = wire.ACKNoCredits
	}
	p.AETH.MSN = noise.Uint32() & 0xffffff
	p.IETH = pick(noise, s.areas[:]).RKey()
	p.OrigData = noise.Uint64()
	frame := p.Frame(&s.path)
	return s.noisyService(noise, frame, p.Opcode.Spec())
}

// noisyService sets the headers of a service such that they are mostly right.
func (s *stand) noisyService(noise *rand.Rand, frame []byte, spec *wire.OpcodeSpec) []byte {
	b := frame[s.path.Len():]
	key, srqn := s.kind.qkey(), uint32(standSRQ)
	if noise.IntN(8) == 0 {
		key, srqn = noise.Uint32(), noise.Uint32()&0xffffff
	}
	putService(b, spec, key, srqn)
	if spec.Has(wire.HasFETH) {
		binary.BigEndian.PutUint32(b[spec.Offsets[wire.HeaderFETH]:], noise.Uint32()&0x1f)
	}
	if spec.Payload == wire.Payload32 {
		bits := b[wire.BTHLen+int(spec.HeaderLen) : len(b)-wire.ICRCLen]
		for i := range bits {
			bits[i] = byte(noise.Uint32())
		}
	}
	s.path.Seal(frame, len(b)-wire.ICRCLen, 1)
	return frame
}

// service sets the headers of a service such that the QP takes the packet.
func (s *stand) service(frame []byte, spec *wire.OpcodeSpec) []byte {
	b := frame[s.path.Len():]
	putService(b, spec, s.kind.qkey(), standSRQ)
	s.path.Seal(frame, len(b)-wire.ICRCLen, 1)
	return frame
}

// putService writes the headers that a roctest.Packet does not know.
func putService(b []byte, spec *wire.OpcodeSpec, qkey, srqn uint32) {
	if spec.Has(wire.HasDETH) {
		wire.DETH{QKey: qkey, SrcQP: qpnB}.Put(b[spec.Offsets[wire.HeaderDETH]:])
	}
	if spec.Has(wire.HasXRCETH) {
		wire.XRCETH{SRQN: srqn}.Put(b[spec.Offsets[wire.HeaderXRCETH]:])
	}
	if spec.Has(wire.HasFETH) {
		wire.FETH{PLT: wire.FlushGlobal}.Put(b[spec.Offsets[wire.HeaderFETH]:])
	}
}

// qkey is the Q_Key of a QP of this kind.
func (k kind) qkey() uint32 {
	if k.typ == roce.TypeGSI {
		return roce.GSIQKey
	}
	return standQKey
}

// datagram tells whether the QP takes datagrams.
func (k kind) datagram() bool { return k.typ == roce.TypeUD || k.typ == roce.TypeGSI }

// giveLong gives the QP a packet of an opcode with n bytes of payload.
func (s *stand) giveLong(op wire.Opcode, n int) {
	p := s.target(op)
	p.Payload = bytes.Repeat([]byte{0x5a}, n)
	s.giveFrame(s.service(p.Frame(&s.path), op.Spec()))
}
