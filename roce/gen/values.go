package gen

import (
	"fmt"
	"math/rand/v2"
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

// ParseValues reads a number, a list ("1,5,9"), a range ("1-9", "1-9/2" with a step), or a
// range of which values are taken by chance ("random:1-9"). Numbers may be hexadecimal, with
// 0x before them; parse reads others, such as addresses, and may be nil.
func ParseValues(text string, seed uint64, parse func(string) (uint64, error)) (Values, error) {
	if parse == nil {
		parse = parseNumber
	}
	span, chance := strings.CutPrefix(text, "random:")
	if strings.Contains(text, ",") {
		var list []uint64
		for item := range strings.SplitSeq(text, ",") {
			n, err := parse(strings.TrimSpace(item))
			if err != nil {
				return Values{}, err
			}
			list = append(list, n)
		}
		return List(list...), nil
	}
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
