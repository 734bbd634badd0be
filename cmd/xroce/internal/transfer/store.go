package transfer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrPath says that a path does not lie below the receiver's directory.
var ErrPath = errors.New("path is not below the directory that is served")

// A file that is being received: under a temporary name beside its final one
// until it is complete.
type partial struct {
	root        *os.Root
	file        *os.File
	temp, final string // below root
}

// create opens a temporary file for what shall become path. A path that is
// empty, ends with a slash or names a directory stands for name in it.
func create(root *os.Root, path, name string) (*partial, error) {
	if path == "" {
		path = "."
	}
	dir := strings.HasSuffix(path, "/")
	if !filepath.IsLocal(path) || name != filepath.Base(name) {
		return nil, fmt.Errorf("%w: %q", ErrPath, path)
	}
	if info, err := root.Stat(path); err == nil && info.IsDir() || dir {
		path = filepath.Join(path, name)
	}
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) || path == "." {
		return nil, fmt.Errorf("%w: %q", ErrPath, path)
	}
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:8]+".part")
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		// The temporary name is of no use to the user, nor is the receiver's
		// directory any business of the sender.
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return &partial{root: root, file: file, temp: temp, final: path}, nil
}

// write adds a chunk.
func (p *partial) write(b []byte) error {
	if _, err := p.file.Write(b); err != nil {
		return p.fault("write", err)
	}
	return nil
}

// commit gives the file its permissions and its name, on disk.
func (p *partial) commit(mode fs.FileMode) error {
	if err := p.file.Chmod(mode.Perm()); err != nil {
		return p.fault("chmod", err)
	}
	if err := p.file.Sync(); err != nil {
		return p.fault("sync", err)
	}
	if err := p.file.Close(); err != nil {
		return p.fault("close", err)
	}
	if err := p.root.Rename(p.temp, p.final); err != nil {
		return p.fault("rename", err)
	}
	p.temp = ""
	return nil
}

// discard removes what was not committed.
func (p *partial) discard() error {
	if p.temp == "" {
		return nil
	}
	// After a failed commit it is closed already; the removal is what counts.
	_ = p.file.Close()
	return p.root.Remove(p.temp)
}

// fault is an error about the final file, without the temporary name.
func (p *partial) fault(op string, err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &linkErr):
		err = linkErr.Err
	}
	return fmt.Errorf("%s %s: %w", op, p.final, err)
}
