package perf

import (
	"fmt"
	"io"
	"strings"

	"xroce/engine/oob/perftest"
)

// Output says how much a Text prints.
type Output int

// What is printed: all, or one number for each result.
const (
	OutputFull Output = iota
	OutputBandwidth
	OutputMessageRate
	OutputLatency
)

// A Text is a Reporter that prints what the tool prints, for people and for the
// scripts that read it.
type Text struct {
	W      io.Writer
	Output Output
}

var ruler = strings.Repeat("-", 87) + "\n"

func (t Text) printf(format string, args ...any) {
	if t.Output == OutputFull {
		fmt.Fprintf(t.W, format, args...)
	}
}

// Waiting is what a server prints first.
func (t Text) Waiting() {
	stars := strings.Repeat("*", 36)
	t.printf("\n%s\n* Waiting for client to connect... *\n%s\n", stars, stars)
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// Agreed implements Reporter.
func (t Text) Agreed(i *Info) {
	t.printf("%s                    %s\n", ruler, i.heading(" "))
	if i.Events {
		t.printf(" Test with events. Using %s_comp0\n", i.Device)
	}
	t.printf(" Dual-port       : OFF\t\tDevice         : %s\n", i.Device)
	t.printf(" Number of qps   : %d\t\tTransport type : IB\n", i.QPs)
	t.printf(" Connection type : %s\t\tUsing SRQ      : %s\n", i.Type, onOff(i.UseSRQ))
	t.printf(" PCIe relax order: OFF\n ibv_wr* API     : OFF\n")
	if i.first() || i.Both {
		t.printf(" TX depth        : %d\n", i.TxDepth)
	}
	if i.PostList > 1 {
		t.printf(" Post List       : %d\n", i.PostList)
	}
	if i.RecvPostList > 1 {
		t.printf(" Recv Post List  : %d\n", i.RecvPostList)
	}
	if i.Test.Verb == Send && (!i.first() || i.Both) {
		t.printf(" RX depth        : %d\n", i.RxDepth)
	}
	if !i.Test.Latency {
		t.printf(" CQ Moderation   : %d\n", i.CQMod)
	}
	t.printf(" Mtu             : %d[B]\n Link type       : Ethernet\n GID index       : %d\n",
		i.PathMTU.Bytes(), i.GID)
	if i.Test.Answered() {
		t.printf(" Outstand reads  : %d\n", i.Outstanding)
	} else {
		t.printf(" Max inline data : %d[B]\n", i.Inline)
	}
	t.printf(" rdma_cm QPs\t : %s\n Data ex. method : %s\n", onOff(i.Managed),
		i.exchangeMethod())
	if i.Mode != "" {
		t.printf(" Progress mode   : %s\n", i.Mode)
	}
	t.printf("%s", ruler)
	for n := range i.Local {
		t.endpoint(i, "local", &i.Local[n])
	}
	for n := range i.Remote {
		t.endpoint(i, "remote", &i.Remote[n])
	}
}

// endpoint prints what one end has told of a QP.
func (t Text) endpoint(i *Info, which string, e *perftest.Endpoint) {
	t.printf(" %s address: LID %04x QPN 0x%04x PSN 0x%x", which, e.LID, e.QPN, uint32(e.PSN))
	if i.Test.Verb == Read {
		t.printf(" OUT 0x%02x", e.OutReads)
	}
	if i.Test.Verb == Read || i.Test.Verb == Write {
		t.printf(" RKey 0x%06x VAddr 0x%014x", e.RKey, e.VAddr)
	}
	octets := make([]string, len(e.GID))
	for n, octet := range e.GID {
		octets[n] = fmt.Sprintf("%02d", octet) // decimal, as the tool has it
	}
	t.printf("\n GID: %s\n", strings.Join(octets, ":"))
}

// Begins implements Reporter.
func (t Text) Begins(i *Info) {
	if i.Test.Latency && i.passive() {
		return // it will have no result
	}
	t.printf("%s", ruler)
	if i.Interval == 0 {
		t.columns(i)
	}
}

// Interval implements Reporter.
func (t Text) Interval(i *Info, v *Interval) {
	if v.From == 0 {
		unit := "MB/sec"
		if i.Gbits {
			unit = "Gb/sec"
		}
		t.printf(" interval[sec]    #bytes     #messages      BW average[%s]   MsgRate[Mpps]\n",
			unit)
	}
	span := fmt.Sprintf("%.2f-%.2f", v.From.Seconds(), v.To.Seconds())
	t.printf(" %12s     %-7d    %-10d     %-7.2f              %-7.6f\n", span, v.Size,
		v.Messages, v.Average, v.MsgRate)
}

// columns prints the line above the results.
func (t Text) columns(i *Info) {
	const bandwidth = " #bytes     #iterations    BW peak[%s]    BW average[%[1]s]   MsgRate[Mpps]"
	switch {
	case !i.Test.Latency && i.Gbits:
		t.printf(bandwidth, "Gb/sec")
	case !i.Test.Latency:
		t.printf(bandwidth, "MB/sec")
	case i.Duration > 0:
		t.printf(" #bytes        #iterations       t_avg[usec]    tps average")
	default:
		t.printf(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    " +
			"t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% percentile[usec] ")
	}
	if i.hasCPUUtil() {
		t.printf("    CPU_Util[%%]")
	}
	t.printf("\n")
}

// Row implements Reporter.
func (t Text) Row(i *Info, r *Row) {
	switch t.Output {
	case OutputBandwidth:
		fmt.Fprintf(t.W, "%f\n", r.Average)
		return
	case OutputMessageRate:
		fmt.Fprintf(t.W, "%f\n", r.MsgRate)
		return
	case OutputLatency:
		average := r.Average
		if r.Latency != nil {
			average = r.Latency.Average
		}
		fmt.Fprintf(t.W, "%f\n", average)
		return
	}
	if r.AfterIntervals {
		t.printf("%s", ruler)
		t.columns(i)
	}
	switch {
	case !i.Test.Latency:
		format := " %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f"
		if i.Gbits && r.Average < 0.1 {
			format = " %-7d    %d           %-7.6f            %-7.6f            %-7.6f"
		}
		t.printf(format, r.Size, r.Iters, r.Peak, r.Average, r.MsgRate)
	case r.Latency == nil:
		t.printf(" %-7d       %d            %-7.2f        %-7.2f", r.Size, r.Iters, r.Average,
			r.TPS)
	default:
		t.latency(i, r)
	}
	if i.hasCPUUtil() {
		t.printf("\t    %-3.2f", r.CPUUtil)
	}
	t.printf("\n")
	if r.Lost > 0 {
		t.printf(" messages that were lost on the way: %d\n", r.Lost)
	}
	if r.Strays > 0 {
		t.printf(" %s\n", strays(r.Strays))
	}
}

// latency prints the result of a latency test by iterations, behind its samples.
func (t Text) latency(i *Info, r *Row) {
	l := r.Latency
	if l.Samples != nil {
		t.printf("#, usec\n")
		for n, s := range l.Samples {
			t.printf("%d, %g\n", n+1, s)
		}
		t.printf("%s", ruler)
		t.columns(i)
	}
	t.printf(" %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f"+
		"\t\t%-7.2f \t\t%-7.2f", r.Size, r.Iters, l.Min, l.Max, l.Typical, l.Average, l.Stdev,
		l.P99, l.P999)
}

// Both implements Reporter.
func (t Text) Both(i *Info, local, remote *Row) {
	for _, end := range []struct {
		name string
		row  *Row
	}{{"Local", local}, {"Remote", remote}} {
		t.printf("%s\n %s results: \n%s", ruler, end.name, ruler)
		t.columns(i)
		t.Row(i, end.row)
	}
}

// Ends implements Reporter.
func (t Text) Ends(*Info) { t.printf("%s", ruler) }

var _ Reporter = Text{}
