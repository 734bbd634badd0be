package worker

import (
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Options tell a worker what to do. The zero value of a field means that the
// worker has no use for it.
type Options struct {
	Mode      string        // "tx", "rx", "fwd", "ping", "echo" and others: see the worker
	Interface string        // network interface in the worker's namespace
	Queue     int           // queue of that interface
	Size      int           // frame bytes from the Ethernet header on, or UDP payload bytes
	Message   int           // bytes of a message, for peers that have messages
	Memory    int           // bytes that messages go through in turn, 0 for those of one
	Batch     int           // frames handled at a time
	Budget    int           // XDP_MAX_TX_SKB_BUDGET, descriptors per send call in copy mode
	RxFrames  int           // receive frames and RX ring entries
	TxFrames  int           // transmit frames and TX ring entries
	SendBuf   int           // SO_SNDBUF in bytes as set, which the kernel doubles
	Warmup    time.Duration // work before the window, whole milliseconds
	Window    time.Duration // work that counts, whole milliseconds
	Header    []byte        // first bytes of each frame to send, at most 128
	Local     string        // IPv4 address of this end, for peers on kernel sockets
	Remote    string        // IPv4 address of the other end
	Port      int           // UDP port of both ends
	QPs       int           // connected queue pairs, 0 for one
	Seed      int           // of a link that loses packets; 0 for a link as it is
	LossPPM   int           // packets in a million that such a link drops on their way out
	Selective bool          // resend only what was lost
	Block     int           // bytes of a block, of messages that lie in memory as blocks
	Protocol  string        // how messages travel, "" for the machine's choice
	Profile   string        // file for a profile of the processor's time, "" for none
	Patience  int           // doublings of the local ACK timeout
	Capture   string        // file to which the packets of the device go, "" for none
}

// Args renders the options as the flags that Parse and the C peers read.
func (o Options) Args() []string {
	args := []string{}
	text := func(flag, v string) {
		if v != "" {
			args = append(args, flag, v)
		}
	}
	number := func(flag string, v int) {
		if v != 0 {
			args = append(args, flag, strconv.Itoa(v))
		}
	}
	text("-i", o.Interface)
	number("-q", o.Queue)
	number("-s", o.Size)
	number("-m", o.Message)
	number("-M", o.Memory)
	number("-b", o.Batch)
	number("-u", o.Budget)
	number("-R", o.RxFrames)
	number("-T", o.TxFrames)
	number("-S", o.SendBuf)
	number("-w", int(o.Warmup.Milliseconds()))
	number("-t", int(o.Window.Milliseconds()))
	text("-x", hex.EncodeToString(o.Header))
	text("-l", o.Local)
	text("-r", o.Remote)
	number("-p", o.Port)
	number("-n", o.QPs)
	number("-e", o.Seed)
	number("-L", o.LossPPM)
	number("-B", o.Block)
	text("-P", o.Protocol)
	text("-f", o.Profile)
	number("-a", o.Patience)
	text("-c", o.Capture)
	if o.Selective {
		args = append(args, "-k")
	}
	return append(args, o.Mode)
}

// Parse reads what Args rendered.
func Parse(args []string) (Options, error) {
	var o Options
	var warmup, window int
	var header string
	fs := flag.NewFlagSet("worker", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.Interface, "i", "", "")
	fs.IntVar(&o.Queue, "q", 0, "")
	fs.IntVar(&o.Size, "s", 0, "")
	fs.IntVar(&o.Message, "m", 0, "")
	fs.IntVar(&o.Memory, "M", 0, "")
	fs.IntVar(&o.Batch, "b", 0, "")
	fs.IntVar(&o.Budget, "u", 0, "")
	fs.IntVar(&o.RxFrames, "R", 0, "")
	fs.IntVar(&o.TxFrames, "T", 0, "")
	fs.IntVar(&o.SendBuf, "S", 0, "")
	fs.IntVar(&warmup, "w", 0, "")
	fs.IntVar(&window, "t", 0, "")
	fs.StringVar(&header, "x", "", "")
	fs.StringVar(&o.Local, "l", "", "")
	fs.StringVar(&o.Remote, "r", "", "")
	fs.IntVar(&o.Port, "p", 0, "")
	fs.IntVar(&o.QPs, "n", 0, "")
	fs.IntVar(&o.Seed, "e", 0, "")
	fs.IntVar(&o.LossPPM, "L", 0, "")
	fs.IntVar(&o.Block, "B", 0, "")
	fs.StringVar(&o.Protocol, "P", "", "")
	fs.StringVar(&o.Profile, "f", "", "")
	fs.IntVar(&o.Patience, "a", 0, "")
	fs.StringVar(&o.Capture, "c", "", "")
	fs.BoolVar(&o.Selective, "k", false, "")
	if err := fs.Parse(args); err != nil {
		return Options{}, fmt.Errorf("worker: %w", err)
	}
	if fs.NArg() != 1 {
		return Options{}, fmt.Errorf("worker: want one mode, got %q", fs.Args())
	}
	o.Mode = fs.Arg(0)
	o.Warmup = time.Duration(warmup) * time.Millisecond
	o.Window = time.Duration(window) * time.Millisecond
	var err error
	if o.Header, err = hex.DecodeString(header); err != nil {
		return Options{}, fmt.Errorf("worker: header: %w", err)
	}
	return o, nil
}
