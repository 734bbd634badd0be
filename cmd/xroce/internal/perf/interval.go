package perf

import "time"

// An Interval is what a loop moved in a part of its time, as iperf3's -i tells: messages that
// this end has sent, or received where it only does that. Times are from the first message.
type Interval struct {
	Size     int // bytes of a message
	From, To time.Duration
	Messages uint64
	Average  float64 // in the unit of bandwidths
	MsgRate  float64 // million messages a second
}

// intervals divides the time of a loop. Without every it tells nothing.
type intervals struct {
	every int64 // nanoseconds, 0 for no intervals
	tell  func(from, to int64, messages uint64)

	running   bool
	zero      int64 // when the first one began
	from, due int64
	messages  uint64 // that there were at from
}

// tick tells of the interval that is over at now, when so many messages have been moved. Of a
// loop that was held up for longer than an interval it tells one, of all that time.
func (v *intervals) tick(now int64, messages uint64) {
	if !v.running || now < v.due {
		return
	}
	v.next(now, messages)
	v.due += (now-v.due)/v.every*v.every + v.every
}

// begin is when the first message begins, once.
func (v *intervals) begin(now int64) {
	if v.every != 0 && !v.running {
		v.running = true
		v.zero, v.from, v.due = now, now, now+v.every
	}
}

// finish tells of what there was since the last one, if anything was.
func (v *intervals) finish(now int64, messages uint64) {
	if v.running && now > v.from && messages > v.messages {
		v.next(now, messages)
	}
}

func (v *intervals) next(now int64, messages uint64) {
	v.tell(v.from-v.zero, now-v.zero, messages-v.messages)
	v.from, v.messages = now, messages
}

// interval makes an Interval of messages of a size.
func (c *Config) interval(size int, from, to int64, messages uint64) *Interval {
	i := &Interval{
		Size: size, From: time.Duration(from), To: time.Duration(to), Messages: messages,
	}
	rate := float64(messages) / (i.To - i.From).Seconds()
	i.Average, i.MsgRate = rate*float64(size)/c.unit(), rate/1e6
	return i
}

// Bounds of Config.Interval, and how many a Record keeps: rows of eighteen hours at one a
// second.
const (
	MinInterval  = 100 * time.Millisecond
	MaxInterval  = time.Hour
	maxIntervals = 1 << 16
)
