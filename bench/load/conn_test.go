package load

import (
	"errors"
	"testing"

	"xroce/bench/worker"
	"xroce/roce"
	"xroce/roce/wire"
)

func TestConnectOptions(t *testing.T) {
	usual := connectOptions(worker.Options{Size: 1024 + RCOverhead})
	if usual.PathMTU != wire.MTU1024 || usual.Timeout != usualTimeout {
		t.Errorf("%+v", usual)
	}
	lossy := connectOptions(worker.Options{Size: 1024 + RCOverhead, Seed: 1})
	if lossy.Timeout != lossyTimeout {
		t.Errorf("over a lossy link: %+v", lossy)
	}
	patient := connectOptions(worker.Options{Size: 1024 + RCOverhead, Seed: 1, Patience: 3})
	if patient.Timeout != lossyTimeout+3 {
		t.Errorf("with patience: %+v", patient)
	}
	if o := connectOptions(worker.Options{Patience: 31}); o.Timeout != longestTimeout {
		t.Errorf("with all patience: %+v", o)
	}
	if e := extensions(worker.Options{Selective: true}); e != roce.ExtSelectiveRepeat {
		t.Errorf("selective repeat asks for %s", e)
	}
}

func TestPipeline(t *testing.T) {
	for _, message := range []int{64, 4096, 16 << 10, 16<<10 + 1, 64 << 10, 8 << 20} {
		depth, every := pipeline(message)
		if depth > sendDepth || depth >= recvDepth || every == 0 || depth%every != 0 {
			t.Errorf("%d bytes: %d in flight, a completion for %d", message, depth, every)
		}
		if inFlight := depth * uint64(message); inFlight < 16*min(uint64(message), 2048) {
			t.Errorf("%d bytes: only %d bytes in flight", message, inFlight)
		}
	}
}

func TestCheckCompletions(t *testing.T) {
	good := roce.Completion{Status: roce.StatusSuccess}
	c := &conn{done: []roce.Completion{good, good, {Status: roce.StatusRetryExcErr}}}
	if done, err := c.check(2, nil); err != nil || len(done) != 2 {
		t.Errorf("two good ones: %d, %v", len(done), err)
	}
	if _, err := c.check(3, nil); !errors.Is(err, errRetries) {
		t.Errorf("retries used up: %v, want %v", err, errRetries)
	}
	c.done[1].Status = roce.StatusRNRRetryExc
	if _, err := c.check(2, nil); err == nil || errors.Is(err, errRetries) {
		t.Errorf("another failure: %v", err)
	}
	broken := errors.New("broken")
	if _, err := c.check(0, broken); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}
