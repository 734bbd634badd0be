package sim

import (
	"fmt"

	"xroce/roce"
)

// Faults say what a direction of the network does to frames. Chances are per
// frame and independent, from 0 to 1. The zero value is a perfect wire.
type Faults struct {
	Drop     float64 // the frame is lost
	Burst    Burst   // losses that come together
	Dup      float64 // it arrives twice, the copy after a delay of its own
	Stale    float64 // a copy arrives once more, up to StaleBy later
	Reorder  float64 // it is held back for up to ReorderBy, and others overtake it
	Hold     float64 // it is held back until HoldFrames others overtook it, or for ReorderBy
	Corrupt  float64 // one to three of its bits are flipped
	Truncate float64 // it ends early
	Extend   float64 // up to 64 bytes of noise follow it
	Clog     float64 // the direction stops for ClogFor with this frame

	Delay      roce.Time // every frame takes this long
	Jitter     roce.Time // and up to this much more
	ReorderBy  roce.Time
	HoldFrames int
	StaleBy    roce.Time
	ClogFor    roce.Time
	ClogLoses  bool // frames that are sent into a clog are lost, not late

	// Spray sends each frame along one of so many paths, drawn for it, the longest of which
	// takes SprayBy longer than the shortest: frames overtake each other, none is late. 0 and 1
	// are one path.
	Spray   int
	SprayBy roce.Time

	MTU     int   // longer frames vanish: bytes without the Ethernet header, 0 for no limit
	Rate    int64 // bits per second, 0 for no limit
	Queue   int   // bytes that may wait for the rate; frames that find it full are lost
	Blocked bool  // nothing passes: a partition
	// Hostile gives corrupt frames a right ICRC again: what then is wrong with
	// them has to be seen in the fields, and wrong payload cannot be seen at all.
	Hostile bool
}

// Burst is loss after Gilbert and Elliott: a direction is in a good or in a bad
// state, and may change it at every frame. The mean burst is 1/Leave frames.
type Burst struct {
	Enter, Leave float64 // chances to enter and to leave the bad state
	Drop         float64 // chance of loss in the bad state
}

func (f *Faults) check() error {
	for _, c := range []struct {
		name  string
		value float64
	}{
		{"drop", f.Drop},
		{"burst enter", f.Burst.Enter},
		{"burst leave", f.Burst.Leave},
		{"burst drop", f.Burst.Drop},
		{"dup", f.Dup},
		{"stale", f.Stale},
		{"reorder", f.Reorder},
		{"hold", f.Hold},
		{"corrupt", f.Corrupt},
		{"truncate", f.Truncate},
		{"extend", f.Extend},
		{"clog", f.Clog},
	} {
		if !(c.value >= 0 && c.value <= 1) {
			return fmt.Errorf("sim: chance of %s is %v, not 0 to 1", c.name, c.value)
		}
	}
	for _, d := range []struct {
		name  string
		value int64
	}{
		{"delay", int64(f.Delay)},
		{"jitter", int64(f.Jitter)},
		{"reorder time", int64(f.ReorderBy)},
		{"frames to hold for", int64(f.HoldFrames)},
		{"stale time", int64(f.StaleBy)},
		{"clog time", int64(f.ClogFor)},
		{"paths", int64(f.Spray)},
		{"length of paths", int64(f.SprayBy)},
		{"MTU", int64(f.MTU)},
		{"rate", f.Rate},
		{"queue", int64(f.Queue)},
	} {
		if d.value < 0 {
			return fmt.Errorf("sim: %s is negative: %d", d.name, d.value)
		}
	}
	return nil
}
