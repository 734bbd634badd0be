package nic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A record is the file that says which rules of an interface are ours, locked by who has them
// for as long as that lives. It goes with the rules.
type record struct {
	file *os.File
	was  content // as it was found
}

// content is what is in the file.
type content struct {
	PID   int    `json:"pid"`
	Rules []Rule `json:"rules"`
}

// maxRecord bounds what is read of a record, in bytes.
const maxRecord = 1 << 16

// openRecord opens and locks the record of an interface. Without create it returns nil when
// there is none, or somebody alive has it.
func openRecord(iface, dir string, create bool) (*record, error) {
	name, err := recordName(iface, dir)
	if err != nil {
		return nil, err
	}
	flags := os.O_RDWR | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		flags |= os.O_CREATE
	}
	for {
		f, err := os.OpenFile(name, flags, 0o600)
		if err != nil {
			if !create && errors.Is(err, os.ErrNotExist) {
				err = nil
			}
			return nil, err
		}
		r := &record{file: f}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			if r.gone(name) {
				f.Close()
				continue // it was removed between the two calls
			}
			if err = r.read(); err == nil {
				return r, nil
			}
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			if err = nil; create {
				_ = r.read() // without it there is no number to tell
				err = fmt.Errorf("%w: process %d steers on %s already", ErrSteer, r.was.PID, iface)
			}
		}
		return nil, errors.Join(err, f.Close())
	}
}

// recordName names the record by the network namespace and the number of the interface,
// which nobody else has as long as the machine runs.
func recordName(iface, dir string) (string, error) {
	ifi, err := net.InterfaceByName(iface)
	if err != nil {
		return "", err
	}
	var ns unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &ns); err != nil {
		return "", fmt.Errorf("network namespace: %w", err)
	}
	return filepath.Join(dir, fmt.Sprintf("steer-%d-%d.json", ns.Ino, ifi.Index)), nil
}

// gone reports whether the file has its name no more.
func (r *record) gone(name string) bool {
	var open, named unix.Stat_t
	return unix.Fstat(int(r.file.Fd()), &open) != nil || unix.Lstat(name, &named) != nil ||
		open.Ino != named.Ino || open.Dev != named.Dev
}

// read reads what is there. An empty file says nothing: whoever made it made no rule. What
// follows a document is of a longer one that was there before.
func (r *record) read() error {
	err := json.NewDecoder(io.LimitReader(r.file, maxRecord)).Decode(&r.was)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is damaged: remove it, and flow rules that nobody needs: %w",
			r.file.Name(), err)
	}
	return nil
}

// write replaces what is there, by a write that is within a page and so not cut in two.
func (r *record) write(rules []Rule) error {
	b, err := json.Marshal(content{os.Getpid(), rules})
	if err != nil {
		return err
	}
	if _, err := r.file.WriteAt(b, 0); err != nil {
		return err
	}
	return r.file.Truncate(int64(len(b)))
}

// sweep removes the rules of a process that is gone.
func (r *record) sweep(t table) error {
	err := r.sweepRules(t, r.was.Rules)
	r.was = content{}
	return err
}

// sweepRules removes those of the rules that are as they were made. One that somebody has
// changed since is his. Of one for which the driver was to find a place and nobody wrote down
// which, any that is the same is it: there was none before it was made.
func (r *record) sweepRules(t table, rules []Rule) error {
	if len(rules) == 0 {
		return nil
	}
	have, err := t.rules()
	if err != nil && unsupported(err) || errors.Is(err, unix.ENODEV) {
		return nil // the interface is gone, or another one has its number by now
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, ours := range rules {
		for _, h := range have {
			same := h.Kind == ours.Kind && h.Queue == ours.Queue && h.Context == ours.Context
			if same && (h.Location == ours.Location || ours.Location == locAny) {
				errs = append(errs, t.remove(h.Location))
			}
		}
	}
	return errors.Join(errs...)
}

// close gives the lock back, and removes the file unless the rules in it could not be removed,
// which is the error: then the next one tries again.
func (r *record) close(err error) error {
	if err == nil {
		err = os.Remove(r.file.Name())
	}
	return errors.Join(err, r.file.Close())
}
