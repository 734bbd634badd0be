package transfer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPartIsForNobodyElse: another user who may look into the directory cannot open what there is
// of a file, and so not lock it: its sender could not go on with it, and it would not make room.
// When it is whole, he can.
func TestPartIsForNobodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	for d := dir; d != filepath.Clean(os.TempDir()); d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	read := func(name string) (string, error) {
		c := exec.Command("cat", filepath.Join(dir, name))
		c.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: 65534, Gid: 65534},
		}
		text, err := c.Output()
		return string(text), err
	}
	p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: 4, Mode: 0o644},
		hostOf("192.0.2.1"))
	must(t, err)
	must(t, p.add([]byte("text")))
	if text, err := read(p.temp); err == nil {
		t.Errorf("another user reads %q", text)
	}
	must(t, errors.Join(p.commit(), p.close()))
	if text, err := read("x"); err != nil || text != "text" {
		t.Errorf("another user reads %q, %v", text, err)
	}
}
