package traffic

import "xroce/roce/gen"

// Faults is how often each mistake was made, by its name, over all flows.
func Faults(flows []*gen.Flow) map[string]uint64 {
	sum := map[string]uint64{}
	for _, f := range flows {
		for k, n := range f.Injected() {
			if n > 0 {
				sum[gen.FaultKind(k).String()] += n
			}
		}
	}
	return sum
}

// FaultNames are the mistakes.
func FaultNames() (names []string) {
	for k := range gen.NumFaults {
		names = append(names, k.String())
	}
	return names
}
