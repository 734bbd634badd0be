package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/demo"
	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/progress"
	"xroce/engine"
	"xroce/engine/control"
)

// An app is one invocation. Tests replace what it takes from the machine.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	open    func(iface string, o engine.Options) (*engine.Device, error)
	machine host.Machine
	now     func() time.Time
	// runtime is the directory of control sockets, "" for none.
	runtime string
	control *control.Server  // of this process, nil until a device is open
	devices []*engine.Device // that were opened
	// captureFile is where the packets of devices are kept, "" for nowhere.
	captureFile string
	captures    []keptCapture
	// metricsAddr is where counters are shown to Prometheus, "" for nowhere.
	metricsAddr string
	metrics     *metricsServer          // nil until a device is open
	end         context.CancelCauseFunc // ends the command
	waiting     atomic.Bool             // a server waits: interrupting it is how it ends

	// For tests, may be nil:
	demoHook  func(demo.Stage) // a stage of the demonstration begins
	demoDir   string           // its files are made there, "" for os.TempDir
	listening func(net.Addr)   // a server listens
	ready     func()           // a server waits
	around    func(func())     // runs what may be left behind: see leave
	// ackTimeout is the code of the local ACK timeout of pingpong, 0 for that of the originals.
	ackTimeout uint8
	// dumpPatience is how long output may take what is left, 0 for defaultDumpPatience of captures
	// that are taken, leavePatience of those that are read.
	dumpPatience time.Duration

	json      bool
	logFormat string
	verbose   int
	logger    *slog.Logger
	ran       bool // the command line was accepted
}

func newApp(stdout, stderr io.Writer) *app {
	return &app{
		stdin: os.Stdin, stdout: stdout, stderr: stderr, open: engine.Open, machine: host.Local{},
		now: time.Now, runtime: control.Directory(),
	}
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	out := &output{w: a.stdout}
	a.stdout = out
	root := a.rootCommand()
	root.SetArgs(args)
	if asksForCompletion(args) {
		a.completions(root)
	}
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	a.end = end
	ended, err := root.ExecuteContextC(inner)
	a.hide()
	a.hideMetrics()
	err = remedy(a.blame(err))
	code := a.exitCode(ctx, err)
	// What is missing in a capture is a failure of its own, which an interruption is not.
	if lost := a.endCaptures(); lost != nil && (code == exitOK || code == exitInterrupted) {
		err, code = lost, exitFailure
	}
	if lost := out.lost(); lost != nil && code == exitOK {
		err, code = lost, exitFailure
	}
	var exit exitError
	switch {
	case err == nil, code == exitOK, errors.As(err, &exit) && exit.err == nil:
	case a.asksForJSON(args):
		a.printJSONError(code, err)
	case code == exitInterrupted:
		fmt.Fprintln(a.stderr, "xroce: interrupted")
	case code == exitUsage:
		usage := ended.UseLine()
		if ended.HasSubCommands() {
			usage = ended.CommandPath() + " COMMAND"
		}
		a.complain("%v\nUsage: %s\nTry '%s --help'.\n", err, usage,
			ended.CommandPath())
	default:
		a.complain("%v\n", err)
	}
	return code
}

// rootCommand builds the tree of commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "xroce",
		Short: "RoCEv2 in user space over AF_XDP",
		Long: `RoCEv2 in user space over AF_XDP: RDMA without RDMA hardware and without kernel
RDMA modules, which on the wire speaks what Linux Soft-RoCE and RoCE adapters do.

Exit codes: 0 it worked, 1 it failed, 2 the command line is wrong, 3 this machine
or this user cannot do it, 130 interrupted. A file that may not be read or written is 1.
A server that is interrupted, or told to end by SIGTERM, while it waits for clients has
done what it was for: 0.`,
		Example: `  xroce demo                # see it work: two hosts on this machine
  xroce check eth0          # what this machine and this interface can do
  xroce pingpong -d eth0 192.0.2.2`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return a.setLogger()
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	flags := root.PersistentFlags()
	flags.BoolVarP(&a.json, "json", "j", false, "print results and errors as JSON")
	flags.StringVar(&a.logFormat, "log-format", "text", "format of logs: text or json")
	flags.CountVarP(&a.verbose, "verbose", "v", "more output; twice for debugging")
	root.AddCommand(
		a.demoCommand(), a.checkCommand(), a.devicesCommand(), a.devinfoCommand(),
		a.pingpongCommand(), a.perfCommand(), a.msgCommand(), a.rpingCommand(), a.ucmatoseCommand(),
		a.udaddyCommand(), a.rdmaServerCommand(), a.rdmaClientCommand(), a.serveCommand(),
		a.copyCommand(), a.tunnelCommand(), a.encapCommand(), a.resCommand(),
		a.decodeCommand(), a.tcpdumpCommand(), a.analyzeCommand(), a.wiresharkCommand(),
		a.pktgenCommand(), a.sinkCommand(), a.fuzzCommand(), a.statCommand(), a.topCommand(),
		a.extcapCommand(),
		a.simCommand(),
		a.versionCommand(),
	)
	return root
}

// command finishes a subcommand: what RunE does is do, and an error of do is no
// longer one of the command line.
func (a *app) command(
	c *cobra.Command, do func(ctx context.Context, args []string) error,
) *cobra.Command {
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.ran = true
		return do(cmd.Context(), args)
	}
	return c
}

// setLogger makes the logger that the flags ask for.
func (a *app) setLogger() error {
	level := slog.LevelWarn
	switch {
	case a.verbose == 1:
		level = slog.LevelInfo
	case a.verbose > 1:
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	switch a.logFormat {
	case "text":
		a.logger = slog.New(slog.NewTextHandler(a.stderr, options))
	case "json":
		a.logger = slog.New(slog.NewJSONHandler(plain.Writer{W: a.stderr}, options))
	default:
		return fmt.Errorf("no log format %q: there are text and json", a.logFormat)
	}
	return nil
}

// printJSON prints a result for programs. Text of a peer in it cannot command a terminal.
func (a *app) printJSON(v any) error {
	document, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = a.stdout.Write(append(plain.JSON(document), '\n'))
	}
	return err
}

// printf prints a result for people. Text of a peer in it cannot command a terminal.
func (a *app) printf(format string, args ...any) {
	fmt.Fprint(a.stdout, plain.Lines(fmt.Sprintf(format, args...)))
}

// complain says on stderr what ended the command. Text of a peer in it cannot command a
// terminal.
func (a *app) complain(format string, args ...any) {
	fmt.Fprintf(a.stderr, "xroce: %s", plain.Lines(fmt.Sprintf(format, args...)))
}

// progress begins to tell about something that is measured in bytes, or in steps.
func (a *app) progress(what string, steps bool) *progress.Line {
	return progress.New(a.stderr, isTerminal(a.stderr), what, steps, a.now)
}

// isTerminal reports whether w is a terminal, where a progress line may be
// written over.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
