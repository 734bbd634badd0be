package softroce

import (
	"fmt"
	"io"
	"io/fs"
)

// A cpioWriter writes an archive in the format that the kernel unpacks as its
// first root: "newc" (kernel Documentation/driver-api/early-userspace/
// buffer-format.rst). Archives may be concatenated; of two files with one name
// the later is the one that stays.
type cpioWriter struct {
	w   io.Writer
	ino int
	err error
}

// File types of st_mode, which the format shares with Unix.
const (
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeLink    = 0o120000
	modeChar    = 0o020000
)

// trailer is the name of the entry that ends an archive.
const trailer = "TRAILER!!!"

// dir adds a directory.
func (c *cpioWriter) dir(name string) { c.entry(name, modeDir|0o755, nil, 0, 0) }

// file adds a regular file.
func (c *cpioWriter) file(name string, perm fs.FileMode, data []byte) {
	c.entry(name, modeRegular|uint32(perm.Perm()), data, 0, 0)
}

// link adds a symbolic link.
func (c *cpioWriter) link(name, target string) {
	c.entry(name, modeLink|0o777, []byte(target), 0, 0)
}

// device adds a character device.
func (c *cpioWriter) device(name string, major, minor int) {
	c.entry(name, modeChar|0o600, nil, major, minor)
}

// close ends the archive and returns the first error of all.
func (c *cpioWriter) close() error {
	c.entry(trailer, 0, nil, 0, 0)
	return c.err
}

// entry writes header, name and data, each padded to four bytes.
func (c *cpioWriter) entry(name string, mode uint32, data []byte, major, minor int) {
	c.ino++
	header := "070701"
	for _, v := range [...]int{
		c.ino, int(mode), 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name) + 1, 0,
	} {
		header += fmt.Sprintf("%08X", v)
	}
	c.write([]byte(header + name + "\x00"))
	c.pad(len(header) + len(name) + 1)
	c.write(data)
	c.pad(len(data))
}

func (c *cpioWriter) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
	}
}

func (c *cpioWriter) pad(n int) { c.write(make([]byte, -n&3)) }
