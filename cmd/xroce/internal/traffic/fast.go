package traffic

import "xroce/roce/gen"

// fastRate is how many frames a second are many: what a socket takes in copy mode on a
// machine that is busy. A run of live frames costs about a tenth of a millisecond beside its
// frames, and at this rate fifty are due by then.
const fastRate = 5e5

// usualSize is about as long as frames are where nobody says.
const usualSize = "64"

// Fast reports whether many frames are to go in a second, in one of the steps and with the longest
// frames: as many as can, or more than fastRate. It is false for a plan that makes no schedule.
func (p *Plan) Fast() bool {
	longest := uint64(1)
	for i := range p.Flows {
		size := p.Flows[i].Size
		if size == "" {
			size = usualSize
		}
		sizes, err := gen.ParseSizes(size, p.Seed)
		if err != nil {
			return false
		}
		longest = max(longest, sizes.Max())
	}
	line, err := gen.ParseRate(p.LineRate)
	if err != nil {
		line = gen.Rate{} // no rate is one of it
	}
	for _, s := range p.Steps {
		step, err := s.step(line.Value, 1)
		switch {
		case err != nil:
			return false
		case step.From.IsMax() || perSecond(step.From, longest) >= fastRate ||
			perSecond(step.To, longest) >= fastRate:
			return true
		}
	}
	return len(p.Steps) == 0
}

// perSecond is how many frames of a length a rate is in a second.
func perSecond(r gen.Rate, length uint64) float64 {
	switch r.Unit {
	case gen.BitsL2:
		return r.Value / float64(8*length)
	case gen.BitsL1:
		return r.Value / float64(8*(length+gen.Layer1Overhead))
	}
	return r.Value
}
