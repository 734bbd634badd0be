//go:build !amd64

package load

import (
	"errors"
	"io"

	"xroce/bench/worker"
)

// Asavie refuses: github.com/asavie/xdp reads and writes ring indices without
// ordering, which only amd64 forgives.
func Asavie(worker.Options, io.Reader, io.Writer) (worker.Report, error) {
	return worker.Report{}, errors.New("load: asavie/xdp is measured on amd64 only")
}
