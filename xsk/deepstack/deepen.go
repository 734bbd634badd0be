package deepstack

// room is what there is afterwards, in bytes: twice what the largest answers of ethtool need.
const room = 96 << 10

// Deepen has the stack of the goroutine grow now, and not in what it calls next: there are at least
// 96 KiB below the caller. When the garbage is collected the stack may become smaller again; what
// is called in between is short.
//
//go:noinline
func Deepen() {
	var all [room]byte
	touch(&all)
}

// touch keeps the compiler from leaving it out.
//
//go:noinline
func touch(all *[room]byte) { all[len(all)-1] = 1 }
