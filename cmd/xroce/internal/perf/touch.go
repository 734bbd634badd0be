package perf

import (
	"errors"
	"runtime"
	"runtime/debug"
)

// errMemoryGone says that the memory of the test is not there any more.
var errMemoryGone = errors.New("the memory of the test is gone: was the file of --mmap cut off?")

// touch runs f, which touches the memory of the test. A file that is mapped may get shorter at
// any time, by anybody's doing, and then an access is a fault (mmap(2), SIGBUS): that is
// errMemoryGone, and no end of the process. What the device touches, it guards itself.
func touch(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = errMemoryGone
		default:
			panic(fault)
		}
	}()
	f()
	return nil
}

// byteAt returns a byte of the memory.
func (e *end) byteAt(at int) (b byte, err error) {
	if e.cfg.File == nil {
		return e.memory[at], nil
	}
	err = touch(func() { b = e.memory[at] })
	return b, err
}

// setByte changes a byte of the memory.
func (e *end) setByte(at int, b byte) error {
	if e.cfg.File == nil {
		e.memory[at] = b
		return nil
	}
	return touch(func() { e.memory[at] = b })
}
