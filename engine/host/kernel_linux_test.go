package host

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestOpenNothing: an interface that is not there is something that does not exist.
func TestOpenNothing(t *testing.T) {
	_, err := Open("xr-nothing")
	if !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "xr-nothing: there is no such interface") {
		t.Error(err)
	}
}
