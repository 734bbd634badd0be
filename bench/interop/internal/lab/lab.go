package lab

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/softroce"
)

// A Lab is the VM, the namespace and the cable between them, with what is recorded of a
// run. Not for concurrent use.
type Lab struct {
	Image   softroce.Image
	VM      *softroce.VM
	Cable   *softroce.Cable // between the namespace, which is end A, and the VM
	Capture *Capture        // of what is on the cable

	site    *softroce.Site
	mtu     int             // of both interfaces
	dir     string          // for our program, its memory and the capture
	xroce   string          // our program
	lacking map[string]bool // commands that xroce does not have
}

// Open builds and boots everything, but for xroce when that is given. Nothing is
// left of a failed try.
func Open(ctx context.Context, xroce string) (l *Lab, err error) {
	l = &Lab{mtu: cases.InterfaceMTU(1024), lacking: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err := softroce.Sweep(); err != nil {
		return l, err
	}
	cache, err := softroce.CacheDir()
	if err != nil {
		return l, err
	}
	if l.Image, err = softroce.Build(ctx, cache, io.Discard); err != nil {
		return l, err
	}
	if l.dir, err = os.MkdirTemp("", "xroce-interop-"); err != nil {
		return l, err
	}
	if l.xroce, err = Program(ctx, l.dir, xroce); err != nil {
		return l, err
	}
	if l.Capture, err = newCapture(l.dir); err != nil {
		return l, err
	}
	if l.site, err = softroce.NewSite(ctx, l.mtu, cases.OurAddrs...); err != nil {
		return l, err
	}
	l.VM, err = softroce.Boot(ctx, l.Image, softroce.Config{
		Number: 2, MTU: l.mtu, Addrs: cases.TheirAddrs,
	})
	if err != nil {
		return l, err
	}
	l.Cable = softroce.NewCable(l.site.Port(), l.VM.Port())
	return l, nil
}

// Close removes all that Open made.
func (l *Lab) Close() error {
	var err error
	if l.Cable != nil {
		err = l.Cable.Close()
	}
	if l.VM != nil {
		err = errors.Join(err, l.VM.Close())
	}
	if l.site != nil {
		err = errors.Join(err, l.site.Close())
	}
	if l.Capture != nil {
		err = errors.Join(err, l.Capture.close())
	}
	if l.dir != "" {
		err = errors.Join(err, os.RemoveAll(l.dir))
	}
	return err
}

// SetMTU gives both ends of the cable an MTU. rxe0 follows its interface.
func (l *Lab) SetMTU(ctx context.Context, mtu int) error {
	if mtu == l.mtu {
		return nil
	}
	if err := l.site.SetMTU(ctx, mtu); err != nil {
		return err
	}
	if err := setMTUIn(ctx, l.VM, mtu); err != nil {
		return err
	}
	l.mtu = mtu
	return nil
}

// Ours starts xroce in the namespace. It is interrupted when the context ends.
func (l *Lab) Ours(ctx context.Context, args []string) (End, *Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	p, err := Start(l.site.Command(ctx, append([]string{l.xroce}, args...)...))
	if err != nil {
		cancel()
		return End{}, nil, err
	}
	return endOf("xroce", p, cancel), p, nil
}

// DumpFile is where xroce writes the memory of a test. It may be that of an earlier one.
func (l *Lab) DumpFile() string { return filepath.Join(l.dir, "memory") }

// Has reports whether xroce has a command with a flag.
func (l *Lab) Has(ctx context.Context, command []string, flag string) bool {
	key := strings.Join(append(command, flag), " ")
	if lacks, known := l.lacking[key]; known {
		return !lacks
	}
	args := append(append([]string{}, command...), "--help")
	out, err := exec.CommandContext(ctx, l.xroce, args...).CombinedOutput()
	// The help of a command names it in the line behind "Usage:".
	usage := "\n  xroce " + strings.Join(command, " ") + " "
	has := err == nil && strings.Contains(string(out), usage) &&
		strings.Contains(string(out), flag)
	l.lacking[key] = !has
	return has
}

// Keep copies the capture and the output of failed cases to a directory.
func (l *Lab) Keep(dir string, outcomes []cases.Outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := l.Capture.copyTo(dir); err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Verdict != cases.Failed {
			continue
		}
		name := strings.ReplaceAll(o.Case.Name(), "/", "-") + ".log"
		text := o.Reason + "\n" + o.Output
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
