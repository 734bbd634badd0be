package main

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/transfer"
)

// keepFetched is how long a part of a file is gone on with that was fetched.
const keepFetched = 24 * time.Hour

// fetch has a file sent by the server.
func (a *app) fetch(ctx context.Context, f *copyFlags, to string) error {
	if f.recursive || f.path == "" || strings.HasSuffix(f.path, "/") {
		return usagef("the server sends one file at a time, which has a PATH")
	}
	ctx, client, leave, err := a.openClient(ctx, f)
	if err != nil {
		return err
	}
	line := a.progress(plain.Text(path.Base(f.path)), false)
	c := transfer.FetchConfig{
		Path: path.Clean(f.path), To: to, Overwrite: f.overwrite, Keep: keepFetched,
		Progress: line.Update, Held: line.From,
	}
	if to == standardStream {
		c.To, c.Writer = "", &leavable{app: a, ctx: ctx, to: a.stdout}
	}
	result, err := client.Fetch(ctx, c)
	line.Close()
	if err := errors.Join(err, leave()); err != nil {
		return notCopied(f.host+":"+f.path, err)
	}
	if c.Writer != nil { // where the result would be
		a.logger.Info("copied", "file", f.path, "bytes", result.Size, "sha256", result.SHA256)
		return nil
	}
	return a.printTransfer("fetched", f.host, result)
}
