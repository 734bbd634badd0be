package gen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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
