package load

import (
	"math/rand/v2"

	"xroce/roce/mem"
)

// keyStep stores o.Message bytes in memory of ours as a packet of a peer does: "store-key" with
// the key of the memory, "store-forged" with keys that are drawn at random, none of which may
// change a byte, "store-copy" without any key, to compare with. "copy-cold" copies from and to
// memory that is in no cache.
func keyStep(mode string, n int) (func(times int) bool, error) {
	random := rand.New(rand.NewPCG(1, 2))
	keys := mem.NewKeys(random)
	domain := &mem.Domain{}
	room, data := make([]byte, n), make([]byte, n)
	for i := range data {
		data[i] = 0xff
	}
	region, err := keys.Register(domain, room, mem.LocalWrite|mem.RemoteWrite)
	if err != nil {
		return nil, err
	}
	by := mem.Accessor{Domain: domain, Party: &mem.Party{}}
	addr, key := region.Addr(), region.RKey()
	switch mode {
	case "copy-cold":
		return coldCopy(n), nil
	case "store-copy":
		return func(times int) bool {
			for range times {
				copy(room, data)
			}
			return true
		}, nil
	case "store-key":
		return func(times int) bool {
			ok := true
			for range times {
				ok = keys.Store(by, key, addr, data, mem.RemoteWrite) == mem.OK && ok
			}
			return ok
		}, nil
	}
	return func(times int) bool {
		refused := true
		for range times {
			forged := random.Uint32()
			if forged == key {
				continue // it was guessed
			}
			refused = keys.Store(by, forged, addr, data, mem.RemoteWrite) != mem.OK && refused
		}
		for _, b := range room {
			refused = refused && b == 0
		}
		return refused
	}, nil
}

// coldLength is more than caches hold.
const coldLength = 256 << 20

// coldCopy copies n bytes at a time from one half of much memory to the other.
func coldCopy(n int) func(times int) bool {
	b := make([]byte, coldLength)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1 // the page is there
	}
	half, at := len(b)/2, 0
	return func(times int) bool {
		for range times {
			if at+n > half {
				at = 0
			}
			copy(b[half+at:][:n], b[at:][:n])
			at += n
		}
		return n <= half
	}
}
