package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/pathcheck"
)

// checkReport is what `xroce check --json` prints.
type checkReport struct {
	General    []host.Finding  `json:"general"`
	Device     string          `json:"device,omitempty"`
	Findings   []host.Finding  `json:"device_findings,omitempty"`
	Interfaces []interfaceJSON `json:"interfaces,omitempty"`
	// Host is the other end, and Path what was found on the way to it.
	Host  string           `json:"host,omitempty"`
	Path  pathcheck.Result `json:"path,omitzero"`
	Works bool             `json:"works"`
	OK    int              `json:"ok"`
	Mend  int              `json:"to_mend"`
}

// interfaceJSON is a row of the table of interfaces.
type interfaceJSON struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	Up        bool   `json:"up"`
	MTU       int    `json:"mtu"`      // bytes
	ActiveMTU int    `json:"path_mtu"` // bytes, 0 for none
	Queues    int    `json:"queues"`
	Qdisc     string `json:"qdisc"`
	XDP       uint32 `json:"xdp_program,omitempty"`
}

// allOfThem is the value of --queue for all queues.
const allOfThem = -1

// checkUsage refuses what cannot be checked.
func checkUsage(args []string, queue int, serve bool, capture, metrics string) error {
	switch {
	case queue < allOfThem:
		return usagef("queue %d is negative", queue)
	case serve && len(args) != 1:
		return usagef("--serve needs an interface, and no host")
	case capture == "-":
		return errCaptureOutput
	case capture != "" && !serve && len(args) != 2:
		return usagef("--capture is for a check with a host, or with --serve")
	case metrics != "" && !serve:
		return usagef("--metrics is for --serve")
	}
	return nil
}

func (a *app) checkCommand() *cobra.Command {
	var queue, port int
	var serve bool
	var capture, metrics string
	c := &cobra.Command{
		Use:   "check [IFACE [HOST]]",
		Short: "Tell what this machine, user and interface can do",
		Long: `Tell what this kernel, this user and an interface can do, what is missing and how
to get it. Without IFACE: the machine, and a table of its interfaces. With IFACE it
also asks the driver which queues RoCE packets come in on and what is done to them
before, and opens AF_XDP sockets on one queue to see what the driver can; some drivers
restart the queue for that. It changes nothing: commands that would mend something are
printed. Exit code 3 when a device cannot work here.

With HOST, where 'xroce check IFACE --serve' runs, it also looks at the way there and
back, with real RoCE packets: by which addresses they pass, how large they may be, which
path MTU to use, and whether a firewall keeps the tools from each other. Exit code 1
then says that something is to mend, anywhere. Without a server there, it says what
could not be checked.`,
		Example: `  xroce check
  sudo xroce check eth0
  sudo xroce check eth0 --queue 1 --json
  sudo xroce check eth0 --serve                 # at the other host
  sudo xroce check eth0 192.0.2.2`,
		Args: cobra.MaximumNArgs(2),
	}
	flags := c.Flags()
	flags.IntVar(&queue, "queue", allOfThem, "take this queue alone; -1 for all, as devices do")
	flags.BoolVar(&serve, "serve", false, "be the HOST of checks, until interrupted")
	flags.IntVarP(&port, "port", "p", pathcheck.Port, "TCP port at which both ends meet")
	flags.StringVar(&capture, "capture", "", "with HOST or --serve, "+captureUsage)
	flags.StringVar(&metrics, "metrics", "", "with --serve, "+metricsUsage)
	return a.command(c, func(ctx context.Context, args []string) error {
		if err := checkUsage(args, queue, serve, capture, metrics); err != nil {
			return err
		}
		a.captureFile = capture
		if err := a.setMetrics(metrics); err != nil {
			return err
		}
		if serve {
			return a.serveChecks(ctx, args[0], queue, port)
		}
		if err := checkPort(port); err != nil {
			return err
		}
		return a.checkOnce(ctx, args, queue, port)
	})
}

// checkOnce checks, prints what it found, and has the exit code say it.
func (a *app) checkOnce(ctx context.Context, args []string, queue, port int) error {
	report, err := a.check(args, queue)
	if err != nil {
		return err
	}
	if len(args) == 2 && report.Works {
		if err := a.checkPath(ctx, report, args[1], queue, port); err != nil {
			return err
		}
		ok, mend := host.Count(report.Path.Findings)
		report.OK, report.Mend = report.OK+ok, report.Mend+mend
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		a.printCheck(report)
	}
	switch {
	case err != nil:
		return err
	case !report.Works:
		return exitError{exitUnsupported, nil}
	case len(args) == 2 && report.Mend > 0:
		return exitError{exitFailure, nil}
	}
	return nil
}

// check gathers and judges.
func (a *app) check(args []string, queue int) (*checkReport, error) {
	general, err := host.General(a.machine, executable())
	if err != nil {
		return nil, err
	}
	list, err := a.machine.Interfaces()
	if err != nil {
		return nil, err
	}
	r := &checkReport{General: general, Works: host.Works(general)}
	if len(args) == 0 {
		r.OK, r.Mend = host.Count(r.General)
		for _, i := range host.Devices(list) {
			r.Interfaces = append(r.Interfaces, interfaceJSON{
				Name: i.Name, Driver: i.Driver, Up: i.Up, MTU: i.MTU,
				ActiveMTU: i.ActiveMTU().Bytes(), Queues: i.Queues, Qdisc: i.Qdisc,
				XDP: i.XDP,
			})
		}
		return r, nil
	}
	i := host.Find(list, args[0])
	if i == nil {
		return nil, fmt.Errorf("there is no interface %s; there are: %s", args[0],
			strings.Join(names(list), ", "))
	}
	if queue >= i.Queues {
		return nil, usagef("%s has no queue %d, only 0 to %d", i.Name, queue, i.Queues-1)
	}
	ours := []int{queue}
	if queue == allOfThem {
		ours = ours[:0]
		for q := range i.Queues {
			ours = append(ours, q)
		}
	}
	r.Device, r.Findings = i.Name, host.Judge(a.machine, *i, ours)
	r.Works = r.Works && host.Works(r.Findings)
	r.OK, r.Mend = host.Count(slices.Concat(r.General, r.Findings))
	return r, nil
}

func names(list []host.Interface) []string {
	var n []string
	for _, i := range list {
		n = append(n, i.Name)
	}
	return n
}

// printCheck prints findings, each with its remedy, and the verdict.
func (a *app) printCheck(r *checkReport) {
	a.printFindings("this machine", r.General)
	if r.Device != "" {
		a.printFindings("device "+r.Device, r.Findings)
	}
	if r.Host != "" {
		a.printFindings("the way to "+r.Host, r.Path.Findings)
	}
	if len(r.Interfaces) > 0 {
		a.printf("\n%-16s %-12s %-5s %6s %8s %6s %-10s %s\n", "interface", "driver", "up", "MTU",
			"path MTU", "queues", "qdisc", "XDP program")
		for _, i := range r.Interfaces {
			a.printf("%-16s %-12s %-5s %6d %8d %6d %-10s %s\n", i.Name, or(i.Driver, "?"),
				yesNo(i.Up), i.MTU, i.ActiveMTU, i.Queues, i.Qdisc, programText(i.XDP))
		}
	}
	defer func() { a.printf("check: %d ok, %d to mend\n", r.OK, r.Mend) }()
	what := "a device"
	if r.Device != "" {
		what = r.Device
	}
	if r.Works {
		a.printf("\n%s can work\n", what)
		return
	}
	a.printf("\n%s cannot work: see what is marked \"no\"\n", what)
}

func (a *app) printFindings(title string, list []host.Finding) {
	a.printf("%s\n", title)
	for _, f := range list {
		a.printf("  %-5s %-38s %s\n", f.Verdict, f.What, f.Value)
		if f.Remedy != "" && f.Verdict != host.Good {
			a.printf("  %-5s %-38s -> %s\n", "", "", f.Remedy)
		}
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func programText(id uint32) string {
	if id == 0 {
		return "-"
	}
	return fmt.Sprintf("id %d", id)
}
