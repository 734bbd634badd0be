package decode

import "xroce/roce/dissect"

// appendPadded adds a number, with spaces before it.
func appendPadded(b []byte, n uint64, width int) []byte {
	for ; width > 1 && n < pow10[width-1]; width-- {
		b = append(b, ' ')
	}
	return dissect.AppendDecimal(b, n)
}

// A counterFace prints numbers that follow each other, most of them by a look at the last digit.
type counterFace struct {
	n    uint64
	text []byte // of that; none before the first number
}

// append adds a number, with spaces before it.
func (f *counterFace) append(b []byte, n uint64, width int) []byte {
	if last := len(f.text) - 1; last >= 0 && n == f.n+1 && f.text[last] != '9' {
		f.text[last]++
	} else {
		f.text = appendPadded(f.text[:0], n, width)
	}
	f.n = n
	return append(b, f.text...)
}

// A clockFace prints times. Most packets come within the second of the one before, whose digits it
// keeps.
type clockFace struct {
	second uint64
	text   []byte // of that and what is before it; none before the first time
}

// fraction is how many bytes the point takes, and what is behind it.
const fraction = 1 + 6

// append adds nanoseconds as seconds with six digits behind the point, or nine where they are finer
// than that.
func (f *clockFace) append(b []byte, ns int64, width int) []byte {
	if ns < 0 { // a clock was set
		return appendSeconds(b, ns, width)
	}
	if s := uint64(ns) / 1e9; s != f.second || len(f.text) == 0 {
		f.second, f.text = s, appendPadded(f.text[:0], s, width-fraction)
	}
	return appendFraction(append(b, f.text...), uint32(uint64(ns)-f.second*1e9))
}

// appendSeconds is that of a time alone.
func appendSeconds(b []byte, ns int64, width int) []byte {
	width -= fraction
	if ns >= 0 {
		b = appendPadded(b, uint64(ns)/1e9, width)
		return appendFraction(b, uint32(uint64(ns)%1e9))
	}
	before := uint64(-ns)
	for n := width - 2; n > 0 && before/1e9 < pow10[n]; n-- {
		b = append(b, ' ')
	}
	b = dissect.AppendDecimal(append(b, '-'), before/1e9)
	return appendFraction(b, uint32(before%1e9))
}

// appendFraction adds what is behind the whole seconds.
func appendFraction(b []byte, ns uint32) []byte {
	b = append(b, '.')
	if us := ns / 1000; us*1000 == ns {
		return dissect.AppendZeros(b, us, 6)
	}
	return dissect.AppendZeros(b, ns, 9)
}

var pow10 = [...]uint64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}
