package transfer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// CheckSource says why a file cannot be sent, without opening it: what is no regular
// file may block who opens it, as a FIFO does, or do something, as a tape does.
func CheckSource(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (%s)", name, info.Mode())
	}
	return nil
}

// openSource opens a file to send. It cannot block, whatever has the name meanwhile.
func openSource(name string) (*os.File, fs.FileInfo, error) {
	if err := CheckSource(name); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file (%s)", name, info.Mode())
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// checkNames refuses names that JSON cannot carry: they would arrive as others.
func (c *SendConfig) checkNames() error {
	for _, name := range []string{c.Path, filepath.Base(c.File)} {
		if !utf8.ValidString(name) {
			return fmt.Errorf("the name %q is not UTF-8 and cannot be sent: rename the file", name)
		}
	}
	return nil
}
