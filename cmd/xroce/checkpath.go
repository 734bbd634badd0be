package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/pathcheck"
	"xroce/cmd/xroce/internal/plain"
	"xroce/engine"
	"xroce/engine/oob"
	"xroce/roce/wire"
)

// toolPorts are the TCP ports at which our programs meet by default. Others connect over RoCE.
func toolPorts() []pathcheck.ToolPort {
	return []pathcheck.ToolPort{{Number: oob.Port, Tools: "pingpong, perf"}}
}

// checkTime bounds a check of a path: what is lost is sent some times, by each kind of address.
const checkTime = 2 * time.Minute

// openCheck opens the device that a check of a path runs on.
func (a *app) openCheck(iface string, queue int) (*engine.Device, error) {
	o := engine.Options{RoCEv1: true, Logger: a.logger}
	if queue != allOfThem {
		o.Queues, o.Partial = []int{queue}, true // that it is one of several was told
	}
	return a.openDevice(iface, o)
}

// serveChecks is the other end of checks, until it is interrupted.
func (a *app) serveChecks(ctx context.Context, iface string, queue, port int) error {
	dev, err := a.openCheck(iface, queue)
	if err != nil {
		return err
	}
	defer dev.Close()
	listener, err := a.listen(ctx, port)
	if err != nil {
		return err
	}
	ration := plain.Ration{Lines: maxComplaints, Span: complaintSpan}
	server := pathcheck.Server{Device: dev, Ended: func(from netip.AddrPort, n int, err error) {
		switch ok, _ := ration.Spend(a.now()); {
		case !ok:
		case err != nil:
			a.logger.Warn("check ended", "from", from.String(), "answered", n,
				"error", plain.Brief(err.Error()))
		default:
			a.logger.Info("check ended", "from", from.String(), "answered", n)
		}
	}}
	for _, p := range toolPorts() {
		server.Ports = append(server.Ports, p.Number)
	}
	a.tellReady(listener.Addr(), fmt.Sprintf(", answering checks at %s, Ctrl-C to end",
		listener.Addr()))
	err = server.Serve(ctx, listener)
	if n := server.TurnedAway(); n > 0 {
		a.logger.Warn("there was no room for some clients", "turned_away", n)
	}
	return err
}

// checkPath adds to a report what there is to say of the way to a host.
func (a *app) checkPath(ctx context.Context, r *checkReport, to string, queue, port int) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	dev, err := a.openCheck(r.Device, queue)
	if err != nil {
		return err
	}
	defer dev.Close()
	r.Host = to
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(to, strconv.Itoa(port)))
	if err != nil {
		return a.checkAlone(ctx, r, dev, port, err)
	}
	client, err := pathcheck.Dial(ctx, dev, conn)
	if err != nil {
		return err
	}
	defer client.Close()
	r.Path, err = client.Run(ctx, toolPorts())
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the check took more than %s: %w", checkTime, err)
	}
	return err
}

// checkAlone tells what can be told when nobody answers at the other end's TCP port.
func (a *app) checkAlone(
	ctx context.Context, r *checkReport, dev *engine.Device, port int, cause error,
) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	remedy := fmt.Sprintf("xroce check IFACE --serve -p %d, at %s", port, plain.Brief(r.Host))
	f := host.Finding{What: "neighbour", Verdict: host.Note, Value: "not tried: no address"}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", r.Host)
	if err == nil && len(addrs) > 0 {
		f = judgeNeighbour(ctx, dev, addrs[0].Unmap())
	}
	tcp := host.Finding{
		What: fmt.Sprintf("TCP port %d", port), Verdict: host.Missing, Remedy: remedy,
		Value: explainDial(cause, r.Host).Error(),
	}
	if errors.Is(cause, unix.ECONNREFUSED) {
		tcp.Value = "the host is there, and nobody answers checks"
	}
	unknown := host.Finding{Verdict: host.Note, Value: "not checked: the other end has to help"}
	r.Path.Findings = append(r.Path.Findings, f, tcp)
	for _, what := range []string{"UDP port 4791", "largest packet", "path MTU to use"} {
		unknown.What = what
		r.Path.Findings = append(r.Path.Findings, unknown)
	}
	return nil
}

// judgeNeighbour asks for the first hop to a host, by ARP or neighbour discovery.
func judgeNeighbour(ctx context.Context, dev *engine.Device, to netip.Addr) host.Finding {
	f := host.Finding{What: "neighbour", Verdict: host.Missing}
	index, err := dev.SourceGID(to)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		av := engine.AddressVector{DGID: wire.GIDFromAddr(to), SGIDIndex: index}
		path, resolveErr := dev.ResolvePath(ctx, av)
		if err = resolveErr; err == nil {
			f.Verdict = host.Good
			f.Value = fmt.Sprintf("%s is reached by %s", to, net.HardwareAddr(path.DstMAC[:]))
			return f
		}
	}
	f.Value = fmt.Sprintf("%s: %v", to, err)
	f.Remedy = fmt.Sprintf("'ip route get %s' and 'ip neighbour show' tell; is the host up, and "+
		"in the network of %s?", to, dev.Name())
	return f
}
