package gen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"xroce/roce/wire"
)

// FaultKind is a mistake on purpose.
type FaultKind uint8

// The mistakes. The last three are of RoCE packets.
const (
	FaultGap       FaultKind = iota // a frame is missing
	FaultDuplicate                  // a frame comes twice
	FaultSwap                       // a frame comes behind the next one
	FaultBadICRC                    // the ICRC is wrong
	FaultBadKey                     // the key is one that nobody has
	FaultOrder                      // the opcode is none that may come now
	NumFaults
)

var faultNames = [NumFaults]string{"gap", "duplicate", "swap", "bad_icrc", "bad_key", "order"}

// String is the name of the mistake.
func (k FaultKind) String() string {
	if k < NumFaults {
		return faultNames[k]
	}
	return fmt.Sprintf("fault(%d)", uint8(k))
}

// A Fault is a rule: each so many frames, or by chance.
type Fault struct {
	Kind   FaultKind
	Every  uint64  // each so many, counted from the first frame; 0 for by chance
	Chance float64 // 0 to 1
}

// ParseFault reads a rule, as gap=100 for each hundredth frame, or swap=0.5% for one of two
// hundred by chance.
func ParseFault(text string) (f Fault, err error) {
	name, rule, _ := strings.Cut(text, "=")
	known := false
	for k := range NumFaults {
		if k.String() == name {
			f.Kind, known = k, true
		}
	}
	if percent, ok := strings.CutSuffix(rule, "%"); ok {
		f.Chance, err = strconv.ParseFloat(percent, 64)
		f.Chance /= 100
		known = known && f.Chance > 0 && f.Chance <= 1
	} else {
		f.Every, err = strconv.ParseUint(rule, 10, 64)
		known = known && f.Every > 0
	}
	if err != nil || !known {
		return f, fmt.Errorf("gen: %q is no fault: give one of %s, = and each how many frames, "+
			"or a percentage", text, strings.Join(faultNames[:], ", "))
	}
	return f, nil
}

// faults decide what is wrong with a frame.
type faults struct {
	rules  []Fault
	random *rand.Rand
}

// possible leaves out what the next frame cannot have at once, or at all: one that is missing has
// no other mistake, one that goes twice is not swapped, and where no key is none is wrong.
func (f *Flow) possible(set uint8) uint8 {
	switch {
	case set>>FaultGap&1 != 0:
		return 1 << FaultGap
	case set>>FaultDuplicate&1 != 0:
		set &^= 1 << FaultSwap
	}
	if set>>FaultBadKey&1 != 0 {
		op := f.roce.fields.Opcodes[f.roce.i]
		if set>>FaultOrder&1 != 0 {
			op = misplaced(op)
		}
		if !hasKey(op.Spec()) {
			set &^= 1 << FaultBadKey
		}
	}
	return set
}

// inject counts mistakes that are made.
func (f *Flow) inject(set uint8) {
	for k := range NumFaults {
		f.injected[k] += uint64(set >> k & 1)
	}
}

// checkFaults refuses mistakes that packets of a sequence cannot have.
func (f *Flow) checkFaults() error {
	p := f.roce
	for _, r := range f.c.Faults {
		keys := false
		for _, op := range p.fields.Opcodes {
			keys = keys || hasKey(op.Spec())
			spec := misplaced(op).Spec()
			n := p.template.FrameLen(wire.BTHLen + int(spec.HeaderLen) + p.fields.MTU.Bytes())
			if r.Kind == FaultOrder && n > f.c.MaxFrame {
				return wrong("%s: %s of path MTU %d has %d bytes, and the interface takes %d",
					r.Kind, spec.Name, p.fields.MTU.Bytes(), n, f.c.MaxFrame)
			}
		}
		if r.Kind == FaultBadKey && !keys {
			return wrong("%s is a mistake of packets with a key, and these have none", r.Kind)
		}
	}
	return nil
}

// hasKey reports whether packets of an opcode name a key.
func hasKey(s *wire.OpcodeSpec) bool {
	return s.Has(wire.HasRETH) || s.Has(wire.HasAtomicETH) || s.Has(wire.HasIETH)
}

// of says which mistakes the frame of a number has, as bits.
func (f *faults) of(seq uint64) (set uint8) {
	for _, r := range f.rules {
		hit := r.Every > 0 && seq%r.Every == r.Every-1
		if r.Every == 0 {
			hit = f.random.Float64() < r.Chance
		}
		if hit {
			set |= 1 << r.Kind
		}
	}
	return set
}
