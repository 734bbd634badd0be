package main

import (
	"fmt"
	"io"
	"sync"
)

// An output writes results and remembers the first error of that: a command whose results
// nobody got has failed. It is safe for concurrent use.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(b)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("results are missing: %w", err)
	}
	return n, err
}

// lost is why results are missing, nil when none are.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
