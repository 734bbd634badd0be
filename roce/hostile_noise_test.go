package roce_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// A chooser makes the choices of a test: a source of noise, or the tape of a
// fuzzer.
type chooser interface {
	IntN(n int) int
	Uint32() uint32
	Uint64() uint64
}

// A tape is a chooser that reads its choices from bytes, and chooses 0 at their
// end.
type tape struct{ data []byte }

func (t *tape) next() byte {
	if len(t.data) == 0 {
		return 0
	}
	b := t.data[0]
	t.data = t.data[1:]
	return b
}

func (t *tape) IntN(n int) int {
	v := int(t.next())
	if n > 256 {
		v = v<<8 | int(t.next())
	}
	return v % n
}

func (t *tape) Uint32() uint32 {
	return uint32(t.next())<<24 | uint32(t.next())<<16 | uint32(t.next())<<8 | uint32(t.next())
}

func (t *tape) Uint64() uint64 { return uint64(t.Uint32())<<32 | uint64(t.Uint32()) }

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
func pick[T any](c chooser, from []T) T { return from[c.IntN(len(from))] }

// opcodesOf are the opcodes of each service, and our own.
var opcodesOf = func() (ops [8][]wire.Opcode) {
	for op, spec := range wire.Opcodes() {
		for service := range ops {
			if int(spec.Service) == service || op == wire.SelectiveAck {
				ops[service] = append(ops[service], op)
			}
		}
	}
	return ops
}()

// answersOf are the answers of a service.
var responsesOf = func() (ops [8][]wire.Opcode) {
	for service := range opcodesOf {
		for _, op := range opcodesOf[service] {
			if op.Spec().Is(wire.ClassResponse) {
				ops[service] = append(ops[service], op)
			}
		}
	}
	return ops
}()

// noisy is a frame for the QP of a random opcode of its service, with headers of
// noise, random lengths and a PSN near the right one.
func (s *stand) noisy(noise chooser) []byte {
	p := s.target(pick(noise, opcodesOf[s.kind.service()]))
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
func (s *stand) noisyService(noise chooser, frame []byte, spec *wire.OpcodeSpec) []byte {
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

// datagram reports whether the QP takes datagrams.
func (k kind) datagram() bool { return k.typ == roce.TypeUD || k.typ == roce.TypeGSI }

// giveLong gives the QP a packet of an opcode with n bytes of payload.
func (s *stand) giveLong(op wire.Opcode, n int) {
	p := s.target(op)
	p.Payload = bytes.Repeat([]byte{0x5a}, n)
	s.giveFrame(s.service(p.Frame(&s.path), op.Spec()))
}
