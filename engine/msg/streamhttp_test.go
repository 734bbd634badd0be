package msg_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"xroce/engine/msg"
)

// echo is a handler that sends back what it is sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Proto", r.Proto)
	w.Header().Set("X-Sum", fmt.Sprintf("%x", sha256.Sum256(body)))
	_, _ = io.Copy(w, bytes.NewReader(body))
}

// serve starts a server on streams, and returns it with a client that reaches it.
func serve(
	t *testing.T, hosts [2]*host, start func(s *httptest.Server),
) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	must(t, s.Listener.Close())
	s.Listener = listen(t, hosts)
	// Connections that the client had no use for after all are no news.
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	client := s.Client()
	transport := client.Transport.(*http.Transport)
	transport.DialContext = hosts[0].DialContext
	// One host has 12 places where it connects: who is beyond that waits for one, and who has one
	// gives way after a second in which he was not run.
	transport.MaxConnsPerHost = 8
	if transport.TLSClientConfig != nil {
		transport.TLSClientConfig.ServerName = "example.com" // of the certificate
	}
	t.Cleanup(client.CloseIdleConnections)
	return s, client
}

// ask sends a request and compares the answer.
func ask(t *testing.T, client *http.Client, url, proto string, body []byte) {
	t.Helper()
	send := bytes.NewReader(body)
	request, err := http.NewRequestWithContext(within(t), http.MethodPost, url, send)
	must(t, err)
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	got, err := io.ReadAll(response.Body)
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(body))
	if err != nil || !bytes.Equal(got, body) || response.Header.Get("X-Sum") != sum ||
		response.Proto != proto || response.Header.Get("X-Proto") != proto {
		t.Errorf("%d of %d bytes by %s: %v", len(got), len(body), response.Proto, err)
	}
}

// TestHTTP carries requests and answers of net/http, many at once.
func TestHTTP(t *testing.T) {
	for _, c := range []struct {
		name, proto string
		start       func(s *httptest.Server)
	}{
		{"1.1", "HTTP/1.1", (*httptest.Server).Start},
		{"1.1 TLS", "HTTP/1.1", (*httptest.Server).StartTLS},
		{"2 TLS", "HTTP/2.0", func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, hosts [2]*host) {
				s, client := serve(t, hosts, c.start)
				for _, n := range []int{0, 1, 1024, 5000, 100_000, 2 << 20} {
					ask(t, client, s.URL, c.proto, numbers(n))
				}
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() { ask(t, client, s.URL, c.proto, numbers(i*3000)) })
				}
				all.Wait()
			})
		})
	}
}

// TestHTTPOfFiles: what net/http sends by io.ReaderFrom arrives, and a connection that the server
// ends is dialled again.
func TestHTTPOfFiles(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	data := numbers(3 << 20)
	s, client := serve(t, hosts, func(s *httptest.Server) {
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		})
		s.Start()
	})
	for range 2 {
		response, err := client.Get(s.URL)
		must(t, err)
		got, err := io.ReadAll(response.Body)
		must(t, err)
		must(t, response.Body.Close())
		if !bytes.Equal(got, data) {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
		s.CloseClientConnections()
	}
}
