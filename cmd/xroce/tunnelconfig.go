package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/configfile"
	"xroce/cmd/xroce/internal/userfile"
)

// readConfig sets flags from the file that --config names, if it does. What the command line has
// is not changed.
func readConfig(name string, flags *pflag.FlagSet) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("--config: %w", userfile.Failed(err))
	}
	defer f.Close()
	err = configfile.Parse(name, f, flags)
	if mistake := (*configfile.Mistake)(nil); errors.As(err, &mistake) {
		return usageError{err}
	}
	return err
}
