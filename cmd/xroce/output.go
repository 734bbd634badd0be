package main

import (
	"fmt"
	"io"
	"sync"
)

// An output writes results and remembers the first error of that: a command whose results
// nobody got has failed. It is safe for concurrent use.
type output struct {
	writing sync.Mutex // held over Write, which may take for ever
	w       io.Writer

	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.writing.Lock()
	defer o.writing.Unlock()
	n, err := o.w.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = fmt.Errorf("results are missing: %w", err)
		}
	}
	return n, err
}

// lost is why results are missing, nil when none are so far. It does not wait for a Write.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
