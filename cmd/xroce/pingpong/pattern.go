package pingpong

// page is how far the marks of a checked message are apart.
const page = 4096

// The bytes of a message: those of the original, which marks the first byte of
// each page when it checks.
const (
	filler = 0x7b
	mark   = 0
)

// fill writes the message to b.
func fill(b []byte, marked bool) {
	for i := range b {
		b[i] = filler
	}
	for i := 0; marked && i < len(b); i += page {
		b[i] = mark
	}
}

// mismatch returns where b differs from a marked message, -1 for nowhere.
func mismatch(b []byte) int {
	for i, v := range b {
		want := byte(filler)
		if i%page == 0 {
			want = mark
		}
		if v != want {
			return i
		}
	}
	return -1
}
