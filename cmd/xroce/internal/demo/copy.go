package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine/cm"
	"xroce/engine/oob"
	"xroce/roce"
	machine "xroce/roce/cm"
)

// showCopy copies a file from host 0 to host 1 as `xroce copy` and `xroce
// serve` do, and compares the copy with the original.
func showCopy(ctx context.Context, o *Options, w *cable, dir string, t tally) error {
	source, err := sourceFile(dir, o.FileSize)
	if err != nil {
		return err
	}
	target := filepath.Join(dir, "received")
	if err := os.Mkdir(target, 0o700); err != nil {
		return err
	}
	d := delivery{
		cable: w, options: o, stage: StageCopy, source: source, dir: target, life: patient,
	}
	result, err := d.run(ctx)
	if err != nil {
		return err
	}
	what := source
	if filepath.Dir(source) == dir && !o.Keep {
		what = "a file of random bytes" // whose name is removed in a moment
	}
	t.report.Copy = CopyFacts{
		Source: what, Bytes: result.Size, Seconds: result.Duration.Seconds(),
		SHA256: result.SHA256,
	}
	return compare(source, filepath.Join(target, result.Path), result, t)
}

// A delivery is a file that goes from host 0 to a directory of host 1.
type delivery struct {
	*cable
	options *Options
	stage   Stage
	source  string
	dir     string
	ext     roce.Extensions // that both ends can do
	life    uint8           // PacketLifeTime of the connection, see manager

	retransmits uint64 // packets that were sent again, valid after run
}

// run opens the devices and sends the file.
func (d *delivery) run(ctx context.Context) (result transfer.Result, err error) {
	store, err := transfer.OpenStore(d.dir, transfer.StoreConfig{})
	if err != nil {
		return result, err
	}
	defer store.Close()
	h, err := d.openBoth(d.options.Device, nil)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	if result, err = d.send(ctx, h, store); err != nil {
		return result, err
	}
	d.retransmits, err = h.retransmitted()
	return result, err
}

// patient is a PacketLifeTime for a cable on which little is lost: as code 16 makes a timeout of
// half a second, a host that does not run for four seconds loses no connection.
const patient = 16

// manager are the options of a connection manager that asks again after 34 ms, and answers again
// after 256, as on a cable that is bad, and whose connections time out after about twice
// 4.096 us * 2^life.
func manager(life uint8) cm.Options {
	return cm.Options{
		Machine: machine.Config{ResponseTimeout: 13, PacketLifeTime: life, AckDelay: 1},
		Linger:  time.Second,
	}
}

// send sends the file over messages.
func (d *delivery) send(
	ctx context.Context, h *hosts, store *transfer.Store,
) (result transfer.Result, err error) {
	var stations [2]*transfer.Station
	for host, dev := range h.dev {
		s, err := transfer.OpenStation(dev, d.ext, manager(d.life))
		if err != nil {
			return result, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		stations[host] = s
	}
	at := netip.AddrPortFrom(h.dev[1].Port().Addrs[0], oob.Port)
	listener, err := stations[1].Endpoint.Listen(at)
	if err != nil {
		return result, err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	received := make(chan error, 1)
	go protect(received, func() error {
		conn, err := listener.Accept(ctx)
		if err != nil {
			return err
		}
		link := &transfer.Link{Endpoint: stations[1].Endpoint, Conn: conn}
		defer link.Close()
		return transfer.Receive(ctx, link, transfer.ReceiveConfig{Store: store})
	})
	client := transfer.Client{Dial: func(ctx context.Context) (*transfer.Link, error) {
		return stations[0].Dial(ctx, at)
	}}
	result, err = client.Send(ctx, transfer.SendConfig{
		File: d.source, Path: "copy", Progress: func(done, total int64) {
			d.options.Progress(d.stage, done, total, 1<<10)
		},
	})
	client.Close()
	if err != nil {
		cancel() // else the receiver might wait for who comes
	}
	return result, errors.Join(err, <-received)
}

// compare reads both files again and checks that they are the same.
func compare(source, target string, result transfer.Result, t tally) error {
	original, size, err := digest(source)
	if err != nil {
		return err
	}
	arrived, copied, err := digest(target)
	if err != nil {
		return err
	}
	t.check(size == copied && size == result.Size, "%s has %d bytes, its copy %d", source, size,
		copied)
	t.check(original == arrived && original == result.SHA256,
		"SHA-256 of %s is %s, of its copy %s", source, original, arrived)
	return nil
}

// protect runs f on a goroutine of its own and turns a panic into an error, so
// that what the demonstration made is removed before the program ends.
func protect(done chan<- error, f func() error) {
	err := errors.New("stopped half way")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		done <- err
	}()
	err = f()
}

// digest is the SHA-256 and the size of a file.
func digest(file string) (sum string, size int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// sourceFile finds a file of at least size bytes: this program, a file of the
// Go toolchain, or one made of random bytes in dir.
func sourceFile(dir string, size int64) (string, error) {
	if exe, err := os.Executable(); err == nil && fileSize(exe) >= size {
		return exe, nil
	}
	if file := toolchainFile(size); file != "" {
		return file, nil
	}
	return randomFile(dir, size)
}

// randomFile makes a file of random bytes in dir.
func randomFile(dir string, size int64) (string, error) {
	f, err := os.Create(filepath.Join(dir, "random"))
	if err != nil {
		return "", err
	}
	if _, err := io.CopyN(f, rand.Reader, size); err != nil {
		return "", errors.Join(err, f.Close())
	}
	return f.Name(), f.Close()
}

func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// toolchainFile looks where the go command has its tools.
func toolchainFile(size int64) (found string) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return ""
	}
	if tool, err = filepath.EvalSymlinks(tool); err != nil {
		return ""
	}
	dir := filepath.Join(filepath.Dir(filepath.Dir(tool)), "pkg")
	// What cannot be read is not a file to copy: errors are skipped.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && fileSize(path) >= size {
			found = path
			return filepath.SkipAll
		}
		return nil
	})
	return found
}
