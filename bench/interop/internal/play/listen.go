package play

import (
	"context"
	"fmt"
	"syscall"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/softroce"
)

// awaitListener waits until a server in a VM listens.
func awaitListener(
	ctx context.Context, vm *softroce.VM, t *cases.Tool, c cases.Case, listener lab.End,
) error {
	if c.Self {
		if !listener.Await(ctx, saysListening) {
			return fmt.Errorf("%s ended, or did not say that it listens", listener.Name)
		}
		return nil
	}
	test := "ss -Hltn | grep -q ':18515 '"
	if t.CM || c.ListensByCM() {
		test = "rdma resource show cm_id | grep -q LISTEN"
	}
	listens, err := vm.Start("until " + test + "; do usleep 10000; done")
	if err != nil {
		return err
	}
	select {
	case <-listens.Done():
		return nil
	case <-listener.Done:
		err = fmt.Errorf("%s ended before it listened", t.Name)
	case <-ctx.Done():
		err = fmt.Errorf("%s did not listen in time", t.Name)
	}
	if stop := listens.Signal(syscall.SIGKILL); stop != nil {
		return stop
	}
	return err
}
