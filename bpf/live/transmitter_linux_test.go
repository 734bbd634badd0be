package live

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// pairAnd makes a pair, and a Transmitter at its end A.
func pairAnd(t *testing.T, o vethpair.Options) (*vethpair.Pair, *Transmitter) {
	t.Helper()
	xsktest.NeedRoot(t)
	o.NoAddrs = true // the kernel sends nothing of its own
	p, err := vethpair.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	var tx *Transmitter
	err = p.Do(vethpair.A, func() (err error) {
		tx, err = Open(p.A.Ifindex, max(o.MTU, 1500)+MinFrame)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tx.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, tx
}

// queue queues a copy of a frame.
func queue(t *testing.T, tx *Transmitter, frame []byte) {
	t.Helper()
	slot, b, ok := tx.Reserve()
	if !ok {
		t.Fatal("no slot is free")
	}
	tx.Queue(slot, copy(b, frame))
}

// runOut runs until all that is queued was sent, and returns how many frames that were.
func runOut(t *testing.T, tx *Transmitter) (sent uint64) {
	t.Helper()
	for late := time.Now().Add(timeout.Scaled(20 * time.Second)); tx.Queued() > 0; {
		n, lost, err := tx.Run()
		if err != nil || lost > 0 {
			t.Fatalf("sent %d, lost %d: %v", n, lost, err)
		}
		if sent += n; time.Now().After(late) {
			t.Fatalf("%d frames are still queued", tx.Queued())
		}
	}
	return sent
}

// listen opens a packet socket at end B that gets every frame.
func listen(t *testing.T, p *vethpair.Pair) (fd int) {
	t.Helper()
	err := p.Do(vethpair.B, func() (err error) {
		const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: p.B.Ifindex})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	wait := unix.NsecToTimeval(timeout.Scaled(10 * time.Second).Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20); err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestRootFrames: frames of every length arrive as they were written, in order, in batches of one
// length and of many.
func TestRootFrames(t *testing.T) {
	p, tx := pairAnd(t, vethpair.Options{MTU: 4000, Threaded: true})
	if tx.Room() < 3000 || tx.Room() > maxRoom {
		t.Fatalf("room for %d bytes", tx.Room())
	}
	takeAt(t, p, passes)
	fd := listen(t, p)
	chance := rand.New(rand.NewPCG(1, 2))
	lengths := make([]int, 0, 2*maxRoom)
	for n := MinFrame; n <= tx.Room(); n++ {
		lengths = append(lengths, n)
	}
	ascending := len(lengths)
	for i := range ascending {
		lengths = append(lengths, lengths[i])
	}
	tail := lengths[ascending:]
	chance.Shuffle(len(tail), func(i, j int) { tail[i], tail[j] = tail[j], tail[i] })
	got := make([]byte, 2*maxRoom)
	for len(lengths) > 0 {
		batch := lengths[:min(50, len(lengths))]
		lengths = lengths[len(batch):]
		want := make([][]byte, 0, len(batch))
		for _, n := range batch {
			frame := make([]byte, n)
			for i := range frame {
				frame[i] = byte(chance.Uint32())
			}
			frame[0] &^= 1
			frame[12], frame[13] = 0x88, 0xb6 // of experiments
			want = append(want, frame)
			queue(t, tx, frame)
		}
		if sent := runOut(t, tx); sent != uint64(len(batch)) {
			t.Fatalf("sent %d of %d", sent, len(batch))
		}
		for _, frame := range want {
			n, _, err := unix.Recvfrom(fd, got, 0)
			for errors.Is(err, unix.EINTR) { // by the runtime of Go
				n, _, err = unix.Recvfrom(fd, got, 0)
			}
			if err != nil {
				t.Fatalf("a frame of %d bytes: %v", len(frame), err)
			}
			if !bytes.Equal(got[:n], frame) {
				t.Fatalf("of %d bytes came %d: % x, want % x", len(frame), n, got[:n], frame)
			}
		}
	}
}

// TestRootSeveral: what came of frames is told to the Transmitter whose they were, also when the
// thread of one goes on with another before the first has seen its result.
func TestRootSeveral(t *testing.T) {
	const frames, runs = 200, 300
	p, first := pairAnd(t, vethpair.Options{Threaded: true})
	countAt(t, p)
	all := []*Transmitter{first}
	for len(all) < 4 {
		err := p.Do(vethpair.A, func() error {
			tx, err := Open(p.A.Ifindex, 1500+MinFrame)
			if err == nil {
				t.Cleanup(func() { tx.Close() })
				all = append(all, tx)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// With one processor for all goroutines, each system call that takes long has it go on.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var wg sync.WaitGroup
	for i, tx := range all {
		wg.Go(func() {
			var got uint64
			for range runs {
				for range frames {
					slot, _, _ := tx.Reserve()
					tx.Queue(slot, 64)
				}
				for tx.Queued() > 0 {
					sent, lost, err := tx.Run()
					if got += sent; err != nil || lost != 0 {
						t.Errorf("%d: sent %d, lost %d: %v", i, sent, lost, err)
						return
					}
				}
			}
			if got != frames*runs {
				t.Errorf("%d: sent %d of %d", i, got, frames*runs)
			}
		})
	}
	wg.Wait()
}

// takeAt attaches an XDP program to end B.
func takeAt(t *testing.T, p *vethpair.Pair, code asm.Instructions) {
	t.Helper()
	err := p.Do(vethpair.B, func() error {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.XDP, License: "Dual MIT/GPL", Instructions: code,
			Flags: unix.BPF_F_XDP_HAS_FRAGS,
		})
		if err != nil {
			return err
		}
		t.Cleanup(func() { prog.Close() })
		l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: p.B.Ifindex})
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// passes is an XDP program that passes all to the kernel.
var passes = asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()} // XDP_PASS

// countAt has an XDP program at end B count the frames that come, and drop them. It returns how
// many came so far.
func countAt(t *testing.T, p *vethpair.Pair) func() uint64 {
	t.Helper()
	table, err := ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	takeAt(t, p, asm.Instructions{
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, table.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"), // XDP_DROP
		asm.Return(),
	})
	return func() (n uint64) {
		if err := table.Lookup(uint32(0), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// TestRootSent: what was sent is what comes, however full the peer's ring is, and each frame is
// sent. The ring has room for a quarter of what is sent at once, and another thread empties it.
func TestRootSent(t *testing.T) {
	p, tx := pairAnd(t, vethpair.Options{Threaded: true})
	came := countAt(t, p)
	frame := make([]byte, 60)
	frame[12], frame[13] = 0x88, 0xb6
	var sent, full uint64
	for range 50 {
		for range Frames {
			queue(t, tx, frame)
		}
		if _, _, ok := tx.Reserve(); ok {
			t.Fatal("there is a slot too many")
		}
		n, lost, err := tx.Run()
		if err != nil || lost > 0 || n+uint64(tx.Queued()) != Frames {
			t.Fatalf("sent %d, lost %d, queued %d: %v", n, lost, tx.Queued(), err)
		}
		if tx.Queued() > 0 {
			full++
		}
		sent += n + runOut(t, tx)
	}
	if sent != 50*Frames {
		t.Errorf("sent %d, want %d", sent, 50*Frames)
	}
	for late := time.Now().Add(timeout.Scaled(10 * time.Second)); came() != sent; {
		if time.Now().After(late) {
			t.Fatalf("sent %d, and %d came", sent, came())
		}
	}
	t.Logf("a run ended before its frames did %d times of 50", full)
}

// TestRootRefused: a peer without an XDP program takes nothing, and nothing is lost by that.
func TestRootRefused(t *testing.T) {
	_, tx := pairAnd(t, vethpair.Options{})
	for i := range 40 {
		queue(t, tx, bytes.Repeat([]byte{byte(i)}, 60+i))
	}
	sent, lost, err := tx.Run()
	if !errors.Is(err, ErrRefused) || !errors.Is(err, errors.ErrUnsupported) || sent+lost > 0 {
		t.Fatalf("sent %d, lost %d: %v", sent, lost, err)
	}
	for i := range 40 {
		if want := bytes.Repeat([]byte{byte(i)}, 60+i); !bytes.Equal(tx.First(), want) {
			t.Fatalf("frame %d: % x", i, tx.First())
		}
		tx.Drop()
	}
	if tx.Queued() != 0 || len(tx.free) != Frames {
		t.Errorf("%d queued, %d free", tx.Queued(), len(tx.free))
	}
}

// TestRootRunAllocations: a run allocates nothing.
func TestRootRunAllocations(t *testing.T) {
	p, tx := pairAnd(t, vethpair.Options{})
	takeAt(t, p, passes)
	frame := make([]byte, 60)
	if n := testing.AllocsPerRun(20, func() {
		for range 16 {
			queue(t, tx, frame)
		}
		if _, _, err := tx.Run(); err != nil {
			t.Fatal(err)
		}
		runOut(t, tx)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestRootOpenFails: what cannot be is an error, and nothing is left of it.
func TestRootOpenFails(t *testing.T) {
	xsktest.NeedRoot(t)
	if tx, err := Open(1<<30, 1514); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENODEV) {
		t.Fatalf("%v, %v", tx, err)
	}
}
