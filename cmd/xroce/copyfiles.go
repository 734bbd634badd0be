package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/progress"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/cmd/xroce/internal/userfile"
)

// standardStream stands for standard input or output on a command line.
const standardStream = "-"

// A copying is what came of the files of one command.
type copying struct {
	*app
	flags  *copyFlags
	client *transfer.Client
	line   *progress.Line

	copyReport
	last error // why the last file was not copied that was not
}

// copyReport is what came of several files, in JSON.
type copyReport struct {
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"` // no files, or hidden
}

// copy sends files and prints what came of each, and of all together where there may be several.
func (a *app) copy(ctx context.Context, f *copyFlags, files []string) error {
	// A file that cannot be sent is told before anything is opened.
	if err := f.checkFiles(files); err != nil {
		return err
	}
	ctx, client, leave, err := a.openClient(ctx, f)
	if err != nil {
		return err
	}
	c := &copying{app: a, flags: f, client: client}
	start := a.now()
	for _, file := range files {
		if err = c.one(ctx, file, len(files) > 1); err != nil {
			break
		}
	}
	c.Seconds = a.now().Sub(start).Seconds()
	err = errors.Join(err, leave())
	if len(files) > 1 || f.recursive {
		err = errors.Join(err, c.total())
	}
	switch {
	case err != nil || c.Failed == 0:
		return err
	case c.Files == 0 && c.Failed == 1:
		return c.last
	}
	return fmt.Errorf("%d of %d files were not copied, at last: %w", c.Failed, c.Files+c.Failed,
		c.last)
}

// checkFiles says what cannot be sent of what was asked for.
func (f *copyFlags) checkFiles(files []string) error {
	names := map[string]string{}
	for _, file := range files {
		if file == standardStream {
			if len(files) > 1 || f.path == "" || strings.HasSuffix(f.path, "/") {
				return usagef("standard input (-) is one file alone and has no name: " +
					"give it a PATH")
			}
			continue
		}
		if info, err := os.Stat(file); err != nil || !info.IsDir() || !f.recursive {
			if err := transfer.CheckSource(file); err != nil {
				return notCopied(file, err)
			}
		}
		if len(files) == 1 {
			return nil
		}
		top, err := f.top(file)
		if err != nil {
			return notCopied(file, err)
		}
		for _, name := range top {
			if before, again := names[name]; again {
				return usagef("%s and %s would have one name there, %s", before, file, name)
			}
			names[name] = file
		}
	}
	return nil
}

// top is which names there will be at the other end of what an argument names.
func (f *copyFlags) top(file string) (names []string, err error) {
	name := filepath.Base(file)
	if !nameless(name) {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(file)
	for _, e := range entries {
		if f.dotfiles || !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// nameless reports whether a directory has no name of its own at the other end: what is in it is
// copied into the one that is there.
func nameless(name string) bool { return name == "." || name == ".." || name == "/" }

// notCopied says of a file that it was not copied, and why. There is a device by then, or none was
// asked for yet: what may not be done is with the file.
func notCopied(file string, err error) error {
	return fmt.Errorf("%s was not copied: %w", file, userfile.Failed(err))
}

// one sends what an argument names, one of several. The error ends the command.
func (c *copying) one(ctx context.Context, file string, several bool) error {
	to := c.flags.path
	if several && to != "" {
		to = strings.TrimSuffix(to, "/") + "/"
	}
	if file == standardStream {
		progress, _ := c.progress("standard input")
		result, err := c.client.Send(ctx, transfer.SendConfig{
			// Its name is the whole PATH, and not one in a directory of that name.
			File: path.Base(to), Path: path.Dir(to) + "/", Reader: c.stdin, Progress: progress,
		})
		return c.ended(file, result, err, true)
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		if err := c.tree(ctx, file, to); err != nil {
			return c.ended(file, transfer.Result{}, err, !several || !transfer.Passable(err))
		}
		return nil
	}
	progress, held := c.progress(filepath.Base(file))
	result, err := c.client.Send(ctx, transfer.SendConfig{
		File: file, Path: to, Progress: progress, Held: held,
	})
	return c.ended(file, result, err, !several || !transfer.Passable(err))
}

// tree sends a directory, and tells of each file. The error is of what keeps the rest of it back.
func (c *copying) tree(ctx context.Context, dir, to string) error {
	name := filepath.Base(dir)
	if (to == "" || strings.HasSuffix(to, "/")) && !nameless(name) {
		to = path.Join(to, name)
	}
	return c.client.SendTree(ctx, transfer.TreeConfig{
		Dir: dir, Path: strings.TrimSuffix(to, "/"), Dotfiles: c.flags.dotfiles,
		Progress: c.progress,
		Sent: func(name string, result transfer.Result, err error) {
			_ = c.ended(filepath.Join(dir, name), result, err, false)
		},
		Skipped: func(name, why string) {
			c.Skipped++
			c.logger.Warn("not copied", "file", plain.Text(filepath.Join(dir, name)), "reason", why)
		},
	})
}

// progress tells of a file from now on.
func (c *copying) progress(name string) (progress func(done, total int64), held func(int64)) {
	c.endLine()
	c.line = c.app.progress(plain.Text(name), false)
	return c.line.Update, c.line.From
}

func (c *copying) endLine() {
	if c.line != nil {
		c.line.Close()
	}
}

// ended tells what came of a file. One that is final is the error of the command.
func (c *copying) ended(file string, result transfer.Result, err error, final bool) error {
	c.endLine()
	if err == nil {
		c.Files++
		c.Bytes += result.Size
		return c.printTransfer("copied", c.flags.host, result)
	}
	if err = notCopied(file, err); final {
		return err
	}
	c.Failed++
	c.last = err
	c.logger.Error("not copied", "file", plain.Text(file), "error", plain.Brief(err.Error()))
	return nil
}

// total prints what came of all files together.
func (c *copying) total() error {
	if c.json {
		return c.printJSON(c.copyReport)
	}
	c.printf("%d files, %s in %.2f s, %.2f Gb/s\n", c.Files, progress.Bytes(c.Bytes), c.Seconds,
		float64(c.Bytes)*8/1e9/max(c.Seconds, 1e-9))
	return nil
}
