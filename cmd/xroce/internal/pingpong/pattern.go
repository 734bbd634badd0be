package pingpong

// page is how far the marks of a checked message are apart.
const page = 4096

// mark is the first byte of each page of a message that is checked.
const mark = 0

// spoiled is in every byte of a place that a message has yet to be written to. No
// message has it.
const spoiled = 0xa5

// filler is in all other bytes of a message, as in the originals.
func (k Kind) filler() byte {
	if k == SRQ {
		return 0
	}
	return 0x7b
}

// fill writes the message to b.
func (k Kind) fill(b []byte, marked bool) {
	for i := range b {
		b[i] = k.filler()
	}
	for i := 0; marked && i < len(b); i += page {
		b[i] = mark
	}
}

// spoil makes b differ from a message in every byte.
func spoil(b []byte) {
	for i := range b {
		b[i] = spoiled
	}
}

// mismatch returns where b differs from a marked message, -1 for nowhere.
func (k Kind) mismatch(b []byte) int {
	for i, v := range b {
		want := k.filler()
		if i%page == 0 {
			want = mark
		}
		if v != want {
			return i
		}
	}
	return -1
}
