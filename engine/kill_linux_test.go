package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/engine"
	"xroce/roce"
	"xroce/xsk/vethpair"
)

// victimEnv makes the test binary a process that opens a device and sends to the endpoint that
// this is, until it is killed.
const victimEnv = "XROCE_TEST_VICTIM"

// killsEnv is how many processes TestKilled kills, for the long run.
const killsEnv = "XROCE_KILLS"

func init() { processes[victimEnv] = victim }

// victim is the process.
func victim(peer string) int {
	err := func() error {
		var to engine.Endpoint
		if err := json.Unmarshal([]byte(peer), &to); err != nil {
			return err
		}
		fmt.Println("begins")
		d, err := engine.Open(vethpair.IfName, engine.Options{})
		if err != nil {
			return err
		}
		pd := d.AllocPD()
		cq, err := d.CreateCQ(1024)
		if err != nil {
			return err
		}
		mr, err := d.RegMR(pd, make([]byte, regionSize), allAccess)
		if err != nil {
			return err
		}
		qp, err := d.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			return err
		}
		err = qp.Modify(&roce.Attr{State: roce.StateInit, Port: 1, Access: allAccess},
			roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
		if err != nil {
			return err
		}
		from, err := d.Endpoint(qp, 1)
		if err != nil {
			return err
		}
		err = qp.Connect(context.Background(), from, to,
			engine.ConnectOptions{SGIDIndex: 1, Timeout: 8})
		for err == nil {
			err = qp.PostSend(&roce.SendWR{
				Opcode: roce.OpWrite, SGList: []roce.SGE{mr.SGE(0, regionSize)},
			})
		}
		if errors.Is(err, roce.ErrQueueFull) {
			select {}
		}
		return err
	}()
	fmt.Println(err)
	return 1
}

// TestKilled kills processes that have a device, at random instants: while they open it and while
// they send. What the kernel then has of them goes by itself, so the next one can open it.
func TestKilled(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	if err := devs[0].Close(); err != nil {
		t.Fatal(err)
	}
	to := newSide(t, devs[1])
	peer, err := json.Marshal(to.end)
	if err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	open := 0
	for range times(killsEnv, 4) {
		if killOne(t, pair, string(peer), time.Duration(rand.IntN(int(150*time.Millisecond)))) {
			open++
		}
	}
	t.Logf("%d of %d had attached their program", open, times(killsEnv, 4))
	if after := filesLeft(t, before); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
	d := openIn(t, pair, vethpair.A, engine.Options{})
	a, b := newSide(t, d), newSide(t, devs[1])
	connect(t, a, b)
	exchange(t, a, b, regionSize)
}

// killOne starts a process and kills it some time after it began to open its device. It reports
// whether the process had come so far as to have its program on the interface.
func killOne(t *testing.T, pair *vethpair.Pair, peer string, after time.Duration) (open bool) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), victimEnv+"="+peer)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in(t, pair, vethpair.A, func(netlink.Link) error { return child.Start() })
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "begins\n" || err != nil {
		t.Errorf("the process says %q (%v)", line, err)
	}
	time.Sleep(after) // the instant is to be any
	open = attachedTo(t, pair)
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	if line, _ := said.ReadString('\n'); line != "" {
		t.Errorf("the process ended with: %s", line)
	}
	_ = child.Wait() // killed: an error, as it should be
	eventually(t, "nothing is attached", func() bool { return !attachedTo(t, pair) })
	return open
}

// attachedTo reports whether a program is on the first end of a pair.
func attachedTo(t *testing.T, pair *vethpair.Pair) (attached bool) {
	t.Helper()
	in(t, pair, vethpair.A, func(l netlink.Link) error {
		attached = l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached
		return nil
	})
	return attached
}
