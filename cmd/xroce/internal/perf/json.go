package perf

import (
	"fmt"
	"math"

	"xroce/engine"
)

// A File is what --out_json writes: the keys of the tool. Of several sizes it has
// the last, as there.
type File struct {
	TestInfo TestInfo `json:"test_info"`
	Results  any      `json:"results"` // a BandwidthJSON, LatencyJSON or DurationJSON
}

// A Document is what --json prints: the same, with all results and what we know
// besides.
type Document struct {
	TestInfo TestInfo `json:"test_info"`
	Results  []any    `json:"results"`
	RoCE     RoCE     `json:"roce"`

	Intervals        []IntervalJSON `json:"intervals,omitempty"` // with -i
	IntervalsLeftOff int            `json:"intervals_left_off,omitempty"`
	ResultsLeftOff   int            `json:"results_left_off,omitempty"` // before the last one
}

// TestInfo is the head of a report, with the keys of the tool.
type TestInfo struct {
	Test           string `json:"test"`
	Events         string `json:"Test with events,omitempty"`
	DualPort       string `json:"Dual_port"`
	Device         string `json:"Device"`
	QPs            int    `json:"Number_of_qps"`
	Transport      string `json:"Transport_type"`
	Connection     string `json:"Connection_type"`
	SRQ            string `json:"Using_SRQ"`
	RelaxedOrder   string `json:"PCIe_relax_order"`
	WRAPI          string `json:"ibv_wr_API"`
	TxDepth        int    `json:"TX_depth,omitempty"`
	PostList       int    `json:"Post_List,omitempty"`
	RecvPostList   int    `json:"Recv_Post_List,omitempty"`
	RxDepth        int    `json:"RX_depth,omitempty"`
	CQModeration   int    `json:"CQ_Moderation,omitempty"`
	MTU            int    `json:"Mtu"`
	Link           string `json:"Link_type"`
	GIDIndex       int    `json:"GID_index"`
	MaxInline      *int   `json:"Max_inline_data,omitempty"`
	Outstanding    *int   `json:"Outstand_reads,omitempty"`
	RDMACM         string `json:"rdma_cm_QPs"`
	ExchangeMethod string `json:"Data_ex_method"`
}

// A Fixed is a number with as many decimals as the tool prints.
type Fixed struct {
	Value    float64
	Decimals int
}

// MarshalJSON implements json.Marshaler.
func (f Fixed) MarshalJSON() ([]byte, error) {
	if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, "%.*f", f.Decimals, f.Value), nil
}

// A BandwidthJSON is the result of a bandwidth test.
type BandwidthJSON struct {
	Size    uint64 `json:"MsgSize"`
	Iters   uint64 `json:"n_iterations"`
	Peak    Fixed  `json:"BW_peak"`
	Average Fixed  `json:"BW_average"`
	MsgRate Fixed  `json:"MsgRate"`
	CPUUtil *Fixed `json:"CPU_util,omitempty"`
	Lost    uint64 `json:"lost,omitempty"`   // ours: UC and UD
	Strays  uint64 `json:"strays,omitempty"` // ours: UD, and UC with -a

	// Ours, with --report-both: what this end has sent, and the other one.
	Local  *BandwidthJSON `json:"local,omitempty"`
	Remote *BandwidthJSON `json:"remote,omitempty"`
}

// A LatencyJSON is the result of a latency test by iterations.
type LatencyJSON struct {
	Size    uint64    `json:"MsgSize"`
	Iters   uint64    `json:"n_iterations"`
	Min     Fixed     `json:"t_min"`
	Max     Fixed     `json:"t_max"`
	Typical Fixed     `json:"t_typical"`
	Average Fixed     `json:"t_avg"`
	Stdev   Fixed     `json:"t_stdev"`
	P99     Fixed     `json:"percentile_99"`
	P999    Fixed     `json:"percentile_99.9"`
	Samples []float64 `json:"samples,omitempty"` // ours: with -H and -U
	Strays  uint64    `json:"strays,omitempty"`  // ours: UD, and UC with -a
}

// A DurationJSON is the result of a latency test by duration.
type DurationJSON struct {
	Size    uint64 `json:"MsgSize"`
	Iters   uint64 `json:"n_iterations"`
	Average Fixed  `json:"t_avg"`
	TPS     Fixed  `json:"tps_average"`
	CPUUtil *Fixed `json:"CPU_util,omitempty"`
	Strays  uint64 `json:"strays,omitempty"` // ours: UD, and UC with -a
}

// An IntervalJSON is what was moved in a part of a run. The first keys are those of iperf3,
// which has them in the same place.
type IntervalJSON struct {
	Sum struct {
		Start   float64 `json:"start"` // seconds from the first message
		End     float64 `json:"end"`
		Seconds float64 `json:"seconds"`
		Bytes   uint64  `json:"bytes"`
		BPS     float64 `json:"bits_per_second"`

		Size     int    `json:"MsgSize"`
		Messages uint64 `json:"n_messages"`
		Average  Fixed  `json:"BW_average"`
		MsgRate  Fixed  `json:"MsgRate"`
	} `json:"sum"`
}

// asJSON is an interval as programs read it.
func (v *Interval) asJSON() (j IntervalJSON) {
	s := &j.Sum
	s.Start, s.End, s.Seconds = v.From.Seconds(), v.To.Seconds(), (v.To - v.From).Seconds()
	s.Size, s.Messages, s.Bytes = v.Size, v.Messages, v.Messages*uint64(v.Size)
	s.BPS = 8 * float64(s.Bytes) / s.Seconds
	s.Average, s.MsgRate = Fixed{v.Average, 2}, Fixed{v.MsgRate, 6}
	return j
}

// RoCE is what only we tell.
type RoCE struct {
	Backend       string            `json:"backend"`
	Mode          string            `json:"mode,omitempty"` // direct, busy or background
	RemoteVersion string            `json:"remote_version"`
	Unit          string            `json:"unit"` // of bandwidths
	Local         []EndpointJSON    `json:"local"`
	Remote        []EndpointJSON    `json:"remote"`
	Counters      map[string]uint64 `json:"counters"` // of the device, those that are not 0
	// Report has the counters of -W, in their order.
	Report []CounterJSON `json:"report_counters,omitempty"`
}

// A CounterJSON is by how much a counter has grown during the test.
type CounterJSON struct {
	Name       string `json:"name"`
	Difference int64  `json:"difference"`
}

// An EndpointJSON is one end of a connection.
type EndpointJSON struct {
	QPN uint32 `json:"qpn"`
	PSN uint32 `json:"psn"`
	GID string `json:"gid"`
}

// testInfo is the head of the report.
func (i *Info) testInfo() TestInfo {
	t := TestInfo{
		Test: i.heading("_"), DualPort: "OFF", Device: i.Device, QPs: i.QPs, Transport: "IB",
		Connection: i.Type.String(), SRQ: onOff(i.UseSRQ), RelaxedOrder: "OFF", WRAPI: "OFF",
		MTU: i.PathMTU.Bytes(), Link: "Ethernet", GIDIndex: i.GID, RDMACM: onOff(i.Managed),
		ExchangeMethod: i.exchangeMethod(),
	}
	if i.Events {
		t.Events = fmt.Sprintf("Using_%s_comp0", i.Device)
	}
	if i.first() || i.Both {
		t.TxDepth = i.TxDepth
	}
	if i.PostList > 1 {
		t.PostList = i.PostList
	}
	if i.RecvPostList > 1 {
		t.RecvPostList = i.RecvPostList
	}
	if i.Test.Verb == Send && (!i.first() || i.Both) {
		t.RxDepth = i.RxDepth
	}
	if !i.Test.Latency {
		t.CQModeration = i.CQMod
	}
	if i.Test.Answered() {
		t.Outstanding = &i.Outstanding
	} else {
		t.MaxInline = &i.Inline
	}
	return t
}

// result is a row with the keys of the tool.
func (i *Info) result(r *Row) any {
	two := func(v float64) Fixed { return Fixed{v, 2} }
	var cpu *Fixed
	if i.hasCPUUtil() {
		cpu = &Fixed{r.CPUUtil, 2}
	}
	switch {
	case !i.Test.Latency:
		b := i.bandwidth(r)
		b.CPUUtil = cpu
		if r.Local != nil && r.Remote != nil {
			local, remote := i.bandwidth(r.Local), i.bandwidth(r.Remote)
			b.Local, b.Remote = &local, &remote
		}
		return b
	case r.Latency == nil:
		return DurationJSON{
			Size: r.Size, Iters: r.Iters, Average: two(r.Average), TPS: two(r.TPS), CPUUtil: cpu,
			Strays: r.Strays,
		}
	}
	l := r.Latency
	return LatencyJSON{
		Size: r.Size, Iters: r.Iters, Min: two(l.Min), Max: two(l.Max), Typical: two(l.Typical),
		Average: two(l.Average), Stdev: two(l.Stdev), P99: two(l.P99), P999: two(l.P999),
		Samples: l.Samples, Strays: r.Strays,
	}
}

// bandwidth is a row of a bandwidth test, without the load of the CPUs.
func (i *Info) bandwidth(r *Row) BandwidthJSON {
	decimals := 2
	if i.Gbits && r.Average < 0.1 {
		decimals = 6
	}
	return BandwidthJSON{
		Size: r.Size, Iters: r.Iters, Peak: Fixed{r.Peak, decimals},
		Average: Fixed{r.Average, decimals}, MsgRate: Fixed{r.MsgRate, 6},
		Lost: r.Lost, Strays: r.Strays,
	}
}

// maxRows is how many results a Record keeps.
const maxRows = 1 << 16

// A Record is a Reporter that keeps what it is told.
type Record struct {
	Info *Info
	Rows []Row // the first ones, and the newest; maxRows at most

	RowsLeftOff int // how many came between them

	Intervals        []Interval // the first maxIntervals
	IntervalsLeftOff int        // how many came after them
}

// Agreed implements Reporter.
func (r *Record) Agreed(i *Info) { r.Info = i }

// Begins implements Reporter.
func (r *Record) Begins(*Info) {}

// Interval implements Reporter.
func (r *Record) Interval(_ *Info, v *Interval) {
	if len(r.Intervals) == maxIntervals {
		r.IntervalsLeftOff++
		return
	}
	r.Intervals = append(r.Intervals, *v)
}

// Row implements Reporter.
func (r *Record) Row(_ *Info, row *Row) {
	if len(r.Rows) == maxRows { // a run without an end
		r.RowsLeftOff++
		r.Rows = r.Rows[:maxRows-1]
	}
	r.Rows = append(r.Rows, *row)
}

// Both implements Reporter. It is of the row before.
func (r *Record) Both(_ *Info, local, remote *Row) {
	if n := len(r.Rows); n > 0 {
		l, m := *local, *remote
		r.Rows[n-1].Local, r.Rows[n-1].Remote = &l, &m
	}
}

// Ends implements Reporter.
func (r *Record) Ends(*Info) {}

// File is what --out_json writes, nil when there is no result.
func (r *Record) File() *File {
	if r.Info == nil || len(r.Rows) == 0 {
		return nil
	}
	return &File{r.Info.testInfo(), r.Info.result(&r.Rows[len(r.Rows)-1])}
}

// Document is what --json prints.
func (r *Record) Document(counters []engine.Counter) Document {
	i := r.Info
	d := Document{TestInfo: i.testInfo(), Results: []any{}, RoCE: RoCE{
		Backend: i.Backend, Mode: i.Mode, RemoteVersion: string(i.RemoteVersion), Unit: "MiB/s",
		Counters: map[string]uint64{},
	}}
	if i.Gbits {
		d.RoCE.Unit = "Gb/s"
	}
	for n := range r.Rows {
		d.Results = append(d.Results, i.result(&r.Rows[n]))
	}
	for n := range r.Intervals {
		d.Intervals = append(d.Intervals, r.Intervals[n].asJSON())
	}
	d.IntervalsLeftOff, d.ResultsLeftOff = r.IntervalsLeftOff, r.RowsLeftOff
	for n := range i.Local {
		l, m := &i.Local[n], &i.Remote[n]
		d.RoCE.Local = append(d.RoCE.Local, EndpointJSON{l.QPN, uint32(l.PSN), l.GID.String()})
		d.RoCE.Remote = append(d.RoCE.Remote, EndpointJSON{m.QPN, uint32(m.PSN), m.GID.String()})
	}
	for _, c := range counters {
		if c.Value != 0 {
			d.RoCE.Counters[c.Name] = c.Value
		}
	}
	return d
}

// Reporters is a Reporter that tells several.
type Reporters []Reporter

// Agreed implements Reporter.
func (rs Reporters) Agreed(i *Info) {
	for _, r := range rs {
		r.Agreed(i)
	}
}

// Begins implements Reporter.
func (rs Reporters) Begins(i *Info) {
	for _, r := range rs {
		r.Begins(i)
	}
}

// Interval implements Reporter.
func (rs Reporters) Interval(i *Info, v *Interval) {
	for _, r := range rs {
		r.Interval(i, v)
	}
}

// Row implements Reporter.
func (rs Reporters) Row(i *Info, row *Row) {
	for _, r := range rs {
		r.Row(i, row)
	}
}

// Both implements Reporter.
func (rs Reporters) Both(i *Info, local, remote *Row) {
	for _, r := range rs {
		r.Both(i, local, remote)
	}
}

// Ends implements Reporter.
func (rs Reporters) Ends(i *Info) {
	for _, r := range rs {
		r.Ends(i)
	}
}

var _ = []Reporter{&Record{}, Reporters{}}

// exchangeMethod is how the ends tell each other what they must know.
func (i *Info) exchangeMethod() string {
	if i.Managed || i.ManagedExchange {
		return "rdma_cm"
	}
	return "Ethernet"
}
