package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/stat"
	"xroce/engine"
	"xroce/engine/control"
)

// resKinds are the kinds of objects, in the order of the summary.
var resKinds = []string{"pd", "cq", "qp", "mr", "mw", "srq"}

// resFlags are what `xroce res` was asked.
type resFlags struct {
	kind string // "" for the summary
	pid  int
	rows int
}

func (a *app) resCommand() *cobra.Command {
	var f resFlags
	c := &cobra.Command{
		Use:   "res [show] [pd|cq|qp|mr|mw|srq]",
		Short: "Show the objects of running xroce processes, as rdma res does",
		Long: `Show how many protection domains, completion queues, queue pairs, memory regions,
memory windows and shared receive queues the running xroce processes of this user
have, or with a kind each of them, in the form of 'rdma res show'. With -v also
memory keys and addresses, with which a peer could use the memory. Nothing in memory
is ever shown. Regions with on-demand paging have the counters of 'rdma statistic show mr'.

Processes answer on sockets in $XDG_RUNTIME_DIR/xroce, for root always in /run/xroce,
which nobody else can enter. Those of other PID namespaces that share the directory are
shown with the numbers that they have there.`,
		Example: `  xroce res
  xroce res show qp
  xroce res mr --pid 1234 -v
  xroce res --json`,
		Args: cobra.MaximumNArgs(2),
	}
	flags := c.Flags()
	flags.IntVar(&f.pid, "pid", 0, "only this process")
	flags.IntVar(&f.rows, "rows", 1000, "at most that many of a kind and device")
	return a.command(c, func(ctx context.Context, args []string) error {
		if len(args) > 0 && args[0] == "show" {
			args = args[1:]
		}
		if len(args) > 0 {
			f.kind = args[0]
		}
		switch {
		case len(args) > 1 || (f.kind != "" && !isResKind(f.kind)):
			return usagef("no objects %q: there are %s", args[len(args)-1],
				strings.Join(resKinds, ", "))
		case f.pid < 0:
			return usagef("--pid %d is negative", f.pid)
		case f.rows < 1 || f.rows > control.MaxRows:
			return usagef("--rows %d is not in 1..%d", f.rows, control.MaxRows)
		}
		return a.res(ctx, f)
	})
}

func isResKind(kind string) bool {
	for _, k := range resKinds {
		if k == kind {
			return true
		}
	}
	return false
}

// res asks and prints.
func (a *app) res(ctx context.Context, f resFlags) error {
	rows := f.rows
	if f.kind == "" && !a.json {
		rows = 0
	}
	answers, err := control.Ask(ctx, a.runtime, f.pid, rows, a.verbose > 0)
	if err = a.heard(ctx, len(answers) > 0, err); err != nil {
		return err
	}
	if f.pid != 0 && len(answers) == 0 {
		return fmt.Errorf("no xroce process %d has a control socket in %s", f.pid, a.runtime)
	}
	if a.json {
		if answers == nil {
			answers = []control.Answer{}
		}
		for i := range answers {
			for j := range answers[i].Devices {
				keepKind(&answers[i].Devices[j], f.kind)
			}
		}
		return a.printJSON(answers)
	}
	for _, answer := range answers {
		owner := fmt.Sprintf("pid %d comm %s", answer.PID, plain.Text(answer.Comm))
		for i := range answer.Devices {
			d := &answer.Devices[i]
			if f.kind == "" {
				a.printf("%s: pd %d cq %d qp %d mr %d mw %d srq %d %s\n", plain.Text(d.Device),
					d.Total.PD, d.Total.CQ, d.Total.QP, d.Total.MR, d.Total.MW, d.Total.SRQ, owner)
				continue
			}
			a.printf("%s", resTable(d, f.kind, owner))
		}
	}
	return nil
}

// keepKind leaves the rows of one kind, all for "".
func keepKind(r *engine.Resources, kind string) {
	for k, drop := range map[string]func(){
		"pd": func() { r.PDs = nil }, "cq": func() { r.CQs = nil },
		"qp": func() { r.QPs = nil }, "mr": func() { r.MRs = nil },
		"mw": func() { r.MWs = nil }, "srq": func() { r.SRQs = nil },
	} {
		if kind != "" && kind != k {
			drop()
		}
	}
}

// resTable prints the objects of one kind, a line each, with the names of rdma res.
func resTable(r *engine.Resources, kind, owner string) string {
	var b strings.Builder
	shown, total := 0, 0
	line := func(format string, args ...any) {
		shown++
		// What another process says of itself is a line, whatever is in it.
		b.WriteString(plain.Text(fmt.Sprintf(format+" %s", append(args, owner)...)) + "\n")
	}
	switch kind {
	case "pd":
		total = r.Total.PD
		for _, p := range r.PDs {
			line("dev %s pdn %d users %d", r.Device, p.PDN, p.Users)
		}
	case "cq":
		total = r.Total.CQ
		for _, c := range r.CQs {
			line("dev %s cqn %d cqe %d users %d", r.Device, c.CQN, c.CQE, c.Users)
		}
	case "qp":
		total = r.Total.QP
		for i := range r.QPs {
			line("%s", resQP(r.Device, &r.QPs[i]))
		}
	case "mr":
		total = r.Total.MR
		for i := range r.MRs {
			line("%s", resMR(r.Device, &r.MRs[i]))
		}
	case "mw":
		total = r.Total.MW
		for i := range r.MWs {
			line("%s", resMW(r.Device, &r.MWs[i]))
		}
	case "srq":
		total = r.Total.SRQ
		for _, s := range r.SRQs {
			line("dev %s srqn %d type %s max-wr %d recvs %d pdn %d%s", r.Device, s.SRQN, s.Type,
				s.MaxWR, s.Recvs, s.PDN, resOptional("cqn", s.CQN))
		}
	}
	if shown < total {
		fmt.Fprintf(&b, "dev %s: %d more, see --rows\n", plain.Text(r.Device), total-shown)
	}
	return b.String()
}

// resQP is a queue pair in one line.
func resQP(device string, q *engine.QPRow) string {
	s := fmt.Sprintf("link %s/1 lqpn %d", device, q.LQPN)
	if q.RQPN != 0 {
		s += fmt.Sprintf(" rqpn %d", q.RQPN)
	}
	s += fmt.Sprintf(" type %s state %s rq-psn %d sq-psn %d pdn %d%s%s%s sends %d recvs %d",
		q.Type, q.State, q.RQPSN, q.SQPSN, q.PDN, resOptional("send-cqn", q.SendCQN),
		resOptional("recv-cqn", q.RecvCQN), resOptional("srqn", q.SRQN), q.SendQueue, q.RecvQueue)
	if s += resOptional("cc-rate-kbps", q.Rate); q.Alpha > 0 {
		s += fmt.Sprintf(" cc-alpha %.4f", q.Alpha)
	}
	return s
}

// resMR is a region in one line, with its keys if they came.
func resMR(device string, m *engine.MRRow) string {
	s := fmt.Sprintf("dev %s mrn %d", device, m.MRN)
	if m.RKey != nil && m.LKey != nil && m.IOVA != nil {
		s += fmt.Sprintf(" rkey 0x%08x lkey 0x%08x iova 0x%x", *m.RKey, *m.LKey, *m.IOVA)
	}
	s += fmt.Sprintf(" mrlen %d access %s pdn %d", m.Len, m.Access, m.PDN)
	if !m.Valid {
		s += " state invalid"
	}
	if m.ODP != nil {
		s += " " + stat.Paging(m.ODP)
	}
	return s
}

// resMW is a window in one line, with its key if it came.
func resMW(device string, w *engine.MWRow) string {
	s := fmt.Sprintf("dev %s mwn %d type %d", device, w.MWN, w.Type)
	if w.RKey != nil {
		s += fmt.Sprintf(" rkey 0x%08x", *w.RKey)
	}
	state := "free"
	if w.Bound {
		state = "bound"
	}
	return s + fmt.Sprintf(" state %s mwlen %d pdn %d", state, w.Len, w.PDN)
}

// resOptional is a name and its number, nothing for 0.
func resOptional(name string, n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %s %d", name, n)
}
