package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Values are what a number that varies takes, one after the other.
type Values struct {
	list   []uint64 // these in turn, when there are any
	from   uint64   // else from here
	count  uint64   // so many, 0 for 2^64
	step   uint64
	random *rand.PCG // else in turn

	next uint64 // how many were taken, modulo count
}

// List takes these in turn.
func List(v ...uint64) Values { return Values{list: v, count: uint64(len(v))} }

// Range goes from one number to another by steps, and begins again.
func Range(from, to, step uint64) (Values, error) {
	if to < from || step == 0 {
		return Values{}, fmt.Errorf("gen: %d to %d by %d is no range", from, to, step)
	}
	return Values{from: from, step: step, count: (to-from)/step + 1}, nil
}

// Random takes numbers of a range by chance; the same seed takes the same.
func Random(from, to, seed uint64) (Values, error) {
	if to < from {
		return Values{}, fmt.Errorf("gen: %d to %d is no range", from, to)
	}
	return Values{from: from, count: to - from + 1, random: rand.NewPCG(seed, from)}, nil
}

// Next is the next value.
func (v *Values) Next() uint64 {
	i := v.next
	switch {
	case v.random != nil:
		n := v.random.Uint64()
		if v.count == 0 {
			return n
		}
		return v.from + n%v.count
	case v.list != nil:
		if v.next++; v.next == v.count {
			v.next = 0
		}
		return v.list[i]
	}
	if v.next++; v.next == v.count {
		v.next = 0
	}
	return v.from + i*v.step
}

// All are the values until they begin again, at most so many.
func (v Values) All(most int) (list []uint64) {
	n := min(uint64(most), v.count)
	if v.count == 0 {
		n = uint64(most)
	}
	for range n {
		list = append(list, v.Next())
	}
	return list
}

// Max is the largest value, and Min the smallest.
func (v *Values) Max() uint64 {
	switch {
	case v.list != nil:
		m := v.list[0]
		for _, x := range v.list {
			m = max(m, x)
		}
		return m
	case v.random != nil:
		return v.from + v.count - 1
	}
	return v.from + (v.count-1)*v.step
}

// Min is the smallest value.
func (v *Values) Min() uint64 {
	m := v.from
	if v.list != nil {
		m = v.list[0]
		for _, x := range v.list {
			m = min(m, x)
		}
	}
	return m
}

// maxPattern is how many values a list may have, with all of its repetitions.
const maxPattern = 1 << 16

// ParseValues reads a number, a range ("1-9", "1-9/2" with a step), a range of which values are
// taken by chance ("random:1-9"), or a list of numbers and ranges, each of which may be repeated:
// "1,5,9", or "64*7,594*4,1000-1003*2", which makes a pattern. Numbers may be hexadecimal, with 0x
// before them; parse reads others, such as addresses, and may be nil.
func ParseValues(text string, seed uint64, parse func(string) (uint64, error)) (Values, error) {
	if parse == nil {
		parse = parseNumber
	}
	if !strings.ContainsAny(text, ",*") {
		return parseSpan(text, seed, parse)
	}
	var list []uint64
	for item := range strings.SplitSeq(text, ",") {
		span, times, repeated := strings.Cut(strings.TrimSpace(item), "*")
		n := uint64(1)
		if repeated {
			var err error
			if n, err = parseNumber(times); err != nil || n == 0 || n > maxPattern {
				return Values{}, fmt.Errorf("gen: %q is not repeated 1 to %d times", item,
					maxPattern)
			}
		}
		v, err := parseSpan(span, seed, parse)
		if err != nil {
			return v, err
		}
		if v.random != nil {
			return v, fmt.Errorf("gen: %q: a list has nothing by chance", item)
		}
		if v.count == 0 || v.count > maxPattern || uint64(len(list))+n*v.count > maxPattern {
			return v, fmt.Errorf("gen: a list has at most %d values", maxPattern)
		}
		list = append(list, slices.Repeat(v.All(maxPattern), int(n))...)
	}
	return List(list...), nil
}

// parseSpan reads a number or a range.
func parseSpan(text string, seed uint64, parse func(string) (uint64, error)) (Values, error) {
	span, chance := strings.CutPrefix(text, "random:")
	span, stride, stepped := strings.Cut(span, "/")
	low, high, isRange := strings.Cut(span, "-")
	from, err := parse(low)
	if err != nil {
		return Values{}, err
	}
	if !isRange {
		if chance || stepped {
			return Values{}, fmt.Errorf("gen: %q is no range", text)
		}
		return List(from), nil
	}
	to, err := parse(high)
	if err != nil {
		return Values{}, err
	}
	step := uint64(1)
	if stepped {
		if step, err = parseNumber(stride); err != nil || chance {
			return Values{}, fmt.Errorf("gen: %q has no step", text)
		}
	}
	if chance {
		return Random(from, to, seed)
	}
	return Range(from, to, step)
}

func parseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("gen: %q is no number", s)
	}
	return n, nil
}
