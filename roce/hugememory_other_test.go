//go:build !linux

package roce_test

import (
	"sync"

	"xroce/roce"
)

// hugeMemory is 2^31 bytes of which no test touches more than a few pages. Made twice, it
// would be memory used before, which Go clears byte by byte.
var hugeMemory = sync.OnceValue(func() []byte { return make([]byte, roce.MaxMessage) })
