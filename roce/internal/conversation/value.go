package conversation

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"xroce/roce"
)

// maxData is the most bytes that one value may stand for.
const maxData = 1 << 16

// parseNumber reads a sum of products of decimal and hexadecimal numbers. It
// counts modulo 2^64, so that 100-0x800000 is a PSN as good as any.
func parseNumber(s string) (uint64, error) {
	return evaluate(s, func(s string) (uint64, error) { return strconv.ParseUint(s, 0, 64) })
}

// parseTime reads a sum of products of times and numbers: 3*67.1ms-1ns.
func parseTime(s string) (roce.Time, error) {
	ns, err := evaluate(s, func(s string) (uint64, error) {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return n, nil
		}
		return parseDuration(s)
	})
	if err == nil && int64(ns) < 0 {
		err = fmt.Errorf("%q is not a time of 0 to 292 years", s)
	}
	return roce.Time(ns), err
}

// evaluate computes a sum of products of atoms.
func evaluate(s string, atom func(string) (uint64, error)) (uint64, error) {
	var sum uint64
	for sign := uint64(1); ; {
		end := strings.IndexAny(s, "+-")
		term := s
		if end >= 0 {
			term = s[:end]
		}
		product := sign
		for _, factor := range strings.Split(term, "*") {
			n, err := atom(factor)
			if err != nil {
				return 0, fmt.Errorf("%q is not a number", factor)
			}
			product *= n
		}
		sum += product
		if end < 0 {
			return sum, nil
		}
		sign = 1
		if s[end] == '-' {
			sign = ^uint64(0)
		}
		s = s[end+1:]
	}
}

var units = []struct {
	name   string
	digits int // of nanoseconds
}{{"ns", 0}, {"us", 3}, {"ms", 6}, {"s", 9}}

// parseDuration reads a decimal number with a unit, exact to the nanosecond.
func parseDuration(s string) (uint64, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok || number == "" || number[len(number)-1] > '9' {
			continue
		}
		whole, frac, _ := strings.Cut(number, ".")
		if len(frac) > u.digits {
			return 0, fmt.Errorf("%q is not a whole number of nanoseconds", s)
		}
		return strconv.ParseUint(whole+frac+strings.Repeat("0", u.digits-len(frac)), 10, 63)
	}
	return 0, fmt.Errorf("%q is not a time", s)
}

// formatTime prints a time as parseTime reads it, in the largest unit in which
// the number is not below one.
func formatTime(t roce.Time) string {
	i := 0
	for i+1 < len(units) && t >= pow10(units[i+1].digits) {
		i++
	}
	u := units[i]
	s := fmt.Sprintf("%0*d", u.digits+1, int64(t))
	whole, frac := s[:len(s)-u.digits], strings.TrimRight(s[len(s)-u.digits:], "0")
	if frac != "" {
		whole += "." + frac
	}
	return whole + u.name
}

func pow10(n int) roce.Time {
	t := roce.Time(1)
	for range n {
		t *= 10
	}
	return t
}

// An address is a number, or an offset into a region.
type address struct {
	region string // "" for a number
	n      uint64
}

func parseAddress(s string) (address, error) {
	name, off, ok := strings.Cut(s, ":")
	if !ok {
		name, off = "", s
	} else if !isName(name) {
		return address{}, fmt.Errorf("%q is not the name of a region", name)
	}
	n, err := parseNumber(off)
	return address{name, n}, err
}

// A key is a number, or the key of a region with some bits turned over.
type key struct {
	region string // "" for a number
	n      uint64
}

func parseKey(s string) (key, error) {
	name, flip, ok := strings.Cut(s, "^")
	if !isName(name) {
		n, err := parseNumber(s)
		return key{"", n}, err
	}
	if !ok {
		return key{name, 0}, nil
	}
	n, err := parseNumber(flip)
	return key{name, n}, err
}

// A span is n bytes at an offset of a region.
type span struct {
	region string
	off, n int
}

func parseSpan(s string) (span, error) {
	part := strings.Split(s, ":")
	if len(part) != 3 || !isName(part[0]) {
		return span{}, fmt.Errorf("%q is not REGION:OFFSET:LENGTH", s)
	}
	off, n, err := parseExtent(part[1], part[2])
	return span{part[0], off, n}, err
}

// parseExtent reads an offset and a length, both small.
func parseExtent(off, n string) (int, int, error) {
	o, err := parseNumber(off)
	if err != nil {
		return 0, 0, err
	}
	l, err := parseNumber(n)
	if err != nil {
		return 0, 0, err
	}
	if o > maxData || l > maxData {
		return 0, 0, fmt.Errorf("offset %d and length %d: at most %d each", o, l, maxData)
	}
	return int(o), int(l), nil
}

// A piece is one entry of a scatter/gather list: part of a region, or any
// numbers at all.
type piece struct {
	region string // "" when addr is absolute and lkey counts
	addr   uint64
	n      uint32
	lkey   uint32
}

// parsePieces reads REGION:OFFSET:LENGTH or ADDRESS:LENGTH:LKEY, separated by
// commas.
func parsePieces(s string) ([]piece, error) {
	var list []piece
	for _, one := range strings.Split(s, ",") {
		part := strings.Split(one, ":")
		if len(part) != 3 {
			return nil, fmt.Errorf("%q is not REGION:OFFSET:LENGTH or ADDRESS:LENGTH:LKEY", one)
		}
		p, numbers := piece{}, part
		if isName(part[0]) {
			p.region, numbers = part[0], part[1:]
		}
		var v [3]uint64
		for i, word := range numbers {
			n, err := parseNumber(word)
			if err != nil {
				return nil, err
			}
			v[i] = n
		}
		p.addr, p.n, p.lkey = v[0], uint32(v[1]), uint32(v[2])
		if v[1] > 1<<32-1 || v[2] > 1<<32-1 {
			return nil, fmt.Errorf("%q: lengths and keys have 32 bits", one)
		}
		list = append(list, p)
	}
	return list, nil
}

// A data value stands for bytes: part of a region, part of a pattern, or the
// bytes themselves.
type data struct {
	span          // region "" when it is not a region
	seed   uint64 // of the pattern, when bytes is nil
	bytes  []byte
	opaque bool // only the length counts
}

func parseData(s string) (data, error) {
	if text, ok := unquote(s); ok {
		return data{bytes: []byte(text), span: span{n: len(text)}}, nil
	}
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		b, err := hex.DecodeString(digits)
		return data{bytes: b, span: span{n: len(b)}}, err
	}
	if number, ok := strings.CutPrefix(s, "u64:"); ok {
		n, err := parseNumber(number)
		return data{bytes: binary.NativeEndian.AppendUint64(nil, n), span: span{n: 8}}, err
	}
	if pattern, ok := strings.CutPrefix(s, "%"); ok {
		part := strings.Split(pattern, ":")
		if len(part) != 3 {
			return data{}, fmt.Errorf("%q is not %%PATTERN:OFFSET:LENGTH", s)
		}
		seed, err := parseNumber(part[0])
		if err != nil {
			return data{}, err
		}
		off, n, err := parseExtent(part[1], part[2])
		return data{seed: seed, span: span{off: off, n: n}}, err
	}
	sp, err := parseSpan(s)
	return data{span: sp}, err
}

// pattern writes bytes off and following of a pattern. Pattern 0 is all zero,
// the others differ from each other and at every offset.
func pattern(b []byte, seed uint64, off int) {
	for i := range b {
		// One step of splitmix64 for every byte: a cheap hash of the offset.
		z := (seed<<32 + uint64(off+i)) * 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		if b[i] = byte(z >> 56); seed == 0 {
			b[i] = 0
		}
	}
}
