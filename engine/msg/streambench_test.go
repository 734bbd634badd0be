package msg_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"xroce/xsk/vethpair"
)

// conns are both ends of a connection.
type conns struct{ client, server net.Conn }

func (c *conns) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// connectTCP connects the two ends of a pair by the kernel's TCP.
func (c *conns) connectTCP(b *testing.B, pair *vethpair.Pair) {
	b.Helper()
	var l net.Listener
	must(b, pair.Do(vethpair.B, func() (err error) {
		l, err = net.Listen("tcp", pair.B.IPv4.Addr().String()+":0")
		return err
	}))
	defer l.Close()
	must(b, pair.Do(vethpair.A, func() (err error) {
		c.client, err = net.Dial("tcp", l.Addr().String())
		return err
	}))
	var err error
	c.server, err = l.Accept()
	must(b, err)
}

// pour sends 128 KiB so many times one way.
func (c *conns) pour(n int) error {
	data, done := make([]byte, 128<<10), make(chan error)
	go func() {
		_, err := io.CopyN(io.Discard, c.server, int64(n)*int64(len(data)))
		done <- err
	}()
	for range n {
		if _, err := c.client.Write(data); err != nil {
			return err
		}
	}
	return <-done
}

// turns sends 64 bytes there and back so many times.
func (c *conns) turns(n int) error {
	buf, done := make([]byte, 64), make(chan error)
	go func() {
		there := make([]byte, len(buf))
		for range n {
			if _, err := io.ReadFull(c.server, there); err != nil {
				done <- err
				return
			}
			if _, err := c.server.Write(there); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range n {
		if _, err := c.client.Write(buf); err != nil {
			return err
		}
		if _, err := io.ReadFull(c.client, buf); err != nil {
			return err
		}
	}
	return <-done
}

// BenchmarkStream measures bytes one way and a round trip between two namespaces, of a stream and
// of TCP over the same interfaces, in turn. The ratio is the median of those of the rounds: more
// than 1 is faster than TCP.
func BenchmarkStream(b *testing.B) {
	pair, hosts := newVethPair(b, vethpair.Options{MTU: 4200})
	l := listen(b, hosts)
	defer l.Close()
	ours, theirs := &conns{}, &conns{}
	client, server := connectStreams(b, hosts[0].Endpoint, l)
	ours.client, ours.server = client, server
	theirs.connectTCP(b, pair)
	defer ours.close()
	defer theirs.close()
	for _, test := range []struct {
		name string
		per  int // of a round
		run  func(c *conns, n int) error
	}{{"throughput", 200, (*conns).pour}, {"roundtrip", 500, (*conns).turns}} {
		b.Run(test.name, func(b *testing.B) {
			var ratios []float64
			var took [2]time.Duration
			for range b.N {
				var round [2]time.Duration
				for i, c := range []*conns{ours, theirs} {
					begin := time.Now()
					must(b, test.run(c, test.per))
					round[i] = time.Since(begin)
					took[i] += round[i]
				}
				ratios = append(ratios, float64(round[1])/float64(round[0]))
			}
			slices.Sort(ratios)
			n := float64(b.N * test.per)
			b.ReportMetric(float64(took[0].Nanoseconds())/n, "ns/ours")
			b.ReportMetric(float64(took[1].Nanoseconds())/n, "ns/TCP")
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
