package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"xroce/cmd/xroce/internal/transfer"
	"xroce/roce"
	"xroce/roce/counter"
)

const (
	// lossShare is the share of the frames that is lost in each direction.
	lossShare = 0.05
	// lossSeed decides which frames those are.
	lossSeed = 20
	// lossSize is the size of the file that is sent, in bytes, unless all files
	// are to be smaller. It is at least lossSizeMin: something must get lost.
	lossSize    = 8 << 20
	lossSizeMin = 1 << 20
)

// recoveries are the ways of sending again what was lost.
var recoveries = []struct {
	name string
	ext  roce.Extensions
}{
	{"go-back-N", 0},
	{"selective repeat", roce.ExtSelectiveRepeat | roce.ExtReorderWindow},
}

// lives are the PacketLifeTimes of one try after the other: a timeout of 134 ms, and one four times
// as long. Go-back-N waits for some ten of them, so that the first is short; but then hosts
// that do not run for a second lose the connection, which is no fault of the recovery.
var lives = []uint8{14, 16, 18}

// showLoss sends a file over a bad cable, first as the standard has it and then
// with our extensions.
func showLoss(ctx context.Context, o *Options, w *cable, dir string, t tally) error {
	source, err := randomFile(dir, max(lossSizeMin, min(lossSize, o.FileSize)))
	if err != nil {
		return err
	}
	for _, r := range recoveries {
		row, err := untilKept(func(life uint8) (LossRow, error) {
			return lossRun(ctx, o, w, dir, source, r.ext, life, t)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		row.Recovery = r.name
		t.report.Loss = append(t.report.Loss, row)
	}
	return os.Remove(source)
}

// untilKept calls run with one of the lives after the other for as long as the connection is lost,
// and notes the tries.
func untilKept(run func(life uint8) (LossRow, error)) (row LossRow, err error) {
	for i, life := range lives {
		row, err = run(life)
		row.Tries = i + 1
		if !errors.Is(err, transfer.ErrLost) {
			break
		}
	}
	return row, err
}

// lossRun sends the file once.
func lossRun(
	ctx context.Context, o *Options, w *cable, dir, source string, ext roce.Extensions, life uint8,
	t tally,
) (LossRow, error) {
	row := LossRow{Share: lossShare, Extensions: ext.String()}
	bad, loss, err := w.lossy(lossShare, lossSeed)
	if err != nil {
		return row, err
	}
	target, err := os.MkdirTemp(dir, "lossy-")
	if err != nil {
		return row, err
	}
	d := delivery{
		cable: bad, options: o, stage: StageLoss, source: source, dir: target, ext: ext, life: life,
	}
	result, err := d.run(ctx)
	if err != nil {
		return row, err
	}
	row.Bytes, row.Seconds, row.SHA256 = result.Size, result.Duration.Seconds(), result.SHA256
	row.Frames, row.Lost = loss.counts()
	row.Retransmits = d.retransmits
	t.check(row.Lost > 0, "loss: no frame of %d was lost", row.Frames)
	t.check(row.Retransmits > 0, "loss: %d frames were lost and none sent again", row.Lost)
	t.check(result.Extensions == ext, "loss: the connection has %s, not %s", result.Extensions, ext)
	return row, compare(source, filepath.Join(target, result.Path), result, t)
}

// retransmitted counts what both hosts sent again.
func (h *hosts) retransmitted() (sum uint64, err error) {
	for host := range h.dev {
		n, err := h.counter(host, counter.Retransmits.String())
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
