package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"xroce/engine"
)

// DefaultSizes are the message sizes in bytes.
var DefaultSizes = []int{1, 64, 4096, 1 << 20}

// MaxSize is the largest message size in bytes that Run takes.
const MaxSize = 64 << 20

// Options say what to show.
type Options struct {
	Simulated bool   // do not try AF_XDP
	Reason    string // why Simulated, for the first line
	Sizes     []int  // message sizes, nil for DefaultSizes
	Capture   string // file to keep the capture in, "" to throw it away
	Keep      bool   // leave namespaces and files for a look
	Device    engine.Options
	CellTime  time.Duration // how long each number of the table is measured, 0 for 200 ms
	FileSize  int64         // least size of the copied file, 0 for 64 MiB
	Dir       string        // where its files are made, "" for os.TempDir

	Started  func(Wire)                                 // before anything happens
	Progress func(stage Stage, done, total, step int64) // step 1 counts steps, else bytes
	Hook     func(Stage)                                // as a stage begins
	Opened   func(*engine.Device)                       // a device was opened
}

func (o *Options) setDefaults() {
	if o.Sizes == nil {
		o.Sizes = DefaultSizes
	}
	if o.CellTime == 0 {
		o.CellTime = 200 * time.Millisecond
	}
	if o.FileSize == 0 {
		o.FileSize = 64 << 20
	}
	if o.Device.Logger == nil {
		o.Device.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Hook == nil {
		o.Hook = func(Stage) {}
	}
	if o.Opened == nil {
		o.Opened = func(*engine.Device) {}
	}
	if o.Started == nil {
		o.Started = func(Wire) {}
	}
	if o.Progress == nil {
		o.Progress = func(Stage, int64, int64, int64) {}
	}
}

// Run shows everything and reports. The report is valid, as far as it goes,
// also with an error: that is what kept the demonstration from going on, the
// end of the context included. What failed to hold is in Report.Failures.
func Run(ctx context.Context, o Options) (report Report, err error) {
	o.setDefaults()
	start := time.Now()
	defer func() { report.Seconds = since(start) }()
	dir, err := os.MkdirTemp(o.Dir, "xroce-demo-")
	if err != nil {
		return report, err
	}
	defer func() {
		if o.Keep {
			report.Kept = append(report.Kept, "rm -r "+dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	w, err := makeWire(&o)
	if err != nil {
		return report, err
	}
	defer func() {
		if o.Keep {
			report.Kept = append(report.Kept, w.remove()...)
			return
		}
		err = errors.Join(err, w.close())
	}()
	w.tell(o.Opened)
	if o.Capture == "" {
		o.Capture = filepath.Join(dir, "demo.pcapng")
	}
	if o.Keep || filepath.Dir(o.Capture) != dir {
		report.Capture.File = o.Capture
	}
	return report, show(ctx, &o, w, dir, &report)
}

// show goes through the stages.
func show(ctx context.Context, o *Options, w *cable, dir string, report *Report) error {
	t := tally{report}
	played, err := showScenes(ctx, o, w, t)
	if err != nil {
		return fmt.Errorf("%s: %w", StageOperations, err)
	}
	o.Hook(StageCapture)
	if err := verifyCapture(o.Capture, played, t); err != nil {
		return fmt.Errorf("%s: %w", StageCapture, err)
	}
	o.Hook(StageCopy)
	if err := showCopy(ctx, o, w, dir, t); err != nil {
		return fmt.Errorf("%s: %w", StageCopy, err)
	}
	o.Hook(StageLoss)
	if err := showLoss(ctx, o, w, dir, t); err != nil {
		return fmt.Errorf("%s: %w", StageLoss, err)
	}
	o.Hook(StageMeasure)
	if err := measure(ctx, o, w, report); err != nil {
		return fmt.Errorf("%s: %w", StageMeasure, err)
	}
	return nil
}
