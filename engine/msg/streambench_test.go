package msg_test

import (
	"io"
	"net"
	"testing"
)

// TestStreamAllocations: bytes cost no memory. The simulated wire does, so it is between two
// namespaces.
func TestStreamAllocations(t *testing.T) {
	hosts := newVeth(t)
	l := listen(t, hosts)
	sa, sb := connectStreams(t, hosts[0].Endpoint, l)
	must(t, l.Close())
	for _, n := range []int{100, 20_000} {
		data, buf := numbers(n), make([]byte, n)
		run := func() {
			_, err := sa.Write(data)
			must(t, err)
			_, err = io.ReadFull(sb, buf)
			must(t, err)
		}
		for range 200 {
			run()
		}
		if got := testing.AllocsPerRun(500, run); got > 0 {
			t.Errorf("%v allocations for %d bytes", got, n)
		}
	}
}

// BenchmarkStream measures bytes one way and a round trip, between two namespaces.
func BenchmarkStream(b *testing.B) {
	hosts := newVeth(b)
	l := listen(b, hosts)
	defer l.Close()
	client, server := connectStreams(b, hosts[0].Endpoint, l)
	defer client.Close()
	defer server.Close()
	benchmarkConns(b, client, server)
}

func benchmarkConns(b *testing.B, client, server net.Conn) {
	b.Run("throughput", func(b *testing.B) {
		data, done := numbers(128<<10), make(chan error)
		go func() {
			_, err := io.CopyN(io.Discard, server, int64(b.N)*int64(len(data)))
			done <- err
		}()
		b.SetBytes(int64(len(data)))
		for range b.N {
			_, err := client.Write(data)
			must(b, err)
		}
		must(b, <-done)
	})
	b.Run("roundtrip", func(b *testing.B) {
		done := make(chan error)
		buf := make([]byte, 64)
		go func() {
			_, err := io.CopyN(server, server, int64(b.N*len(buf)))
			done <- err
		}()
		for range b.N {
			_, err := client.Write(buf)
			must(b, err)
			_, err = io.ReadFull(client, buf)
			must(b, err)
		}
		must(b, <-done)
	})
}
