package msg_test

import (
	"io"
	"net"
	"testing"
)

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
