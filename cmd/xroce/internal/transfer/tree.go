package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of a tree of directories.
const (
	maxDepth   = 64      // directories below each other
	maxEntries = 1 << 20 // names of all directories together
)

// ErrTree says that a tree of directories has more than is sent.
var ErrTree = errors.New("too many directories or files")

// TreeConfig says what to send of a directory and where to.
type TreeConfig struct {
	Dir      string // directory to read
	Path     string // path at the server, below its directory, "" for that
	Dotfiles bool   // send what begins with a dot

	// Progress returns what is told of a file, and what of what is gone on behind; it may be
	// nil.
	Progress func(name string) (progress func(done, total int64), held func(int64))
	// Sent is told what came of each file.
	Sent func(name string, result Result, err error)
	// Skipped is told of what is no regular file and no directory, and of hidden ones.
	Skipped func(name, why string)
}

// A walk goes through a tree, and follows no symbolic link in it.
type walk struct {
	TreeConfig
	client  *Client
	entries int
}

// SendTree sends a directory and all that is in it. A file that cannot be sent does not keep
// others from it; the error is of what does.
func (c *Client) SendTree(ctx context.Context, t TreeConfig) error {
	dir, err := os.OpenFile(t.Dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return (&walk{TreeConfig: t, client: c}).dir(ctx, dir, "", 0)
}

// dir sends a directory, and closes it. rel is where it is in the tree.
func (w *walk) dir(ctx context.Context, at *os.File, rel string, depth int) error {
	defer at.Close()
	if to := path.Join(w.Path, rel); to != "" && to != "." {
		if err := w.client.makeDir(ctx, to); err != nil {
			if !Passable(err) {
				return err
			}
			w.Sent(rel, Result{}, err)
			return nil
		}
	}
	entries, err := at.ReadDir(maxEntries - w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		w.Sent(rel, Result{}, err)
	}
	if w.entries += len(entries); w.entries > maxEntries || depth >= maxDepth {
		return fmt.Errorf("%w: %s, at most %d below each other and %d names", ErrTree,
			path.Join(w.Dir, rel), maxDepth, maxEntries)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return strings.Compare(a.Name(), b.Name())
	})
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := w.entry(ctx, at, e, path.Join(rel, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

// entry sends one entry of a directory.
func (w *walk) entry(
	ctx context.Context, at *os.File, e fs.DirEntry, rel string, depth int,
) error {
	switch {
	case strings.HasPrefix(e.Name(), ".") && !w.Dotfiles:
		w.Skipped(rel, "its name begins with a dot (--dotfiles sends it)")
		return nil
	case e.IsDir():
		next, err := openDir(at, e.Name())
		if err != nil {
			w.Sent(rel, Result{}, err)
			return nil
		}
		return w.dir(ctx, next, rel, depth+1)
	case !e.Type().IsRegular():
		w.Skipped(rel, "it is no regular file and no directory")
		return nil
	}
	file, info, err := openSourceAt(ctx, at, e.Name())
	var result Result
	if err == nil {
		// Into the directory that was made for it, and not into one that has its name.
		c := SendConfig{File: e.Name(), Path: path.Join(w.Path, path.Dir(rel)) + "/"}
		if w.Progress != nil {
			c.Progress, c.Held = w.Progress(rel)
		}
		result, err = w.client.sendOpen(ctx, c, file, info)
	}
	if err != nil && !Passable(err) {
		return err
	}
	w.Sent(rel, result, err)
	return nil
}

// Passable reports whether what one file failed with leaves others a chance.
func Passable(err error) bool {
	var no refusal
	var one failure
	var local *fs.PathError
	var name nameError
	return errors.As(err, &no) || errors.As(err, &one) || errors.Is(err, ErrChanged) ||
		errors.As(err, &local) || errors.As(err, &name)
}

// makeDir has the server make a directory.
func (c *Client) makeDir(ctx context.Context, to string) error {
	if err := checkName(to); err != nil {
		return err
	}
	_, err := c.persist(ctx, func(conn *control) (Result, int64, error) {
		// It brings the directory to disk, which others may be writing to.
		_, err := conn.ask(ctx, message{Ask: askDir, Path: to}, conn.patience.forWork(0))
		return Result{}, 0, refused(err)
	})
	return err
}
