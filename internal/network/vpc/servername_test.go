// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

func TestTheNameThatAClientAsksForIsHeard(t *testing.T) {
	for name, c := range map[string]struct {
		say  func(net.Conn)
		want string
	}{
		"a name": {func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "a.example.com", MinVersion: tls.VersionTLS12}).Handshake()
		}, "a.example.com"},
		"no name": {func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "10.0.0.3", MinVersion: tls.VersionTLS12}).Handshake()
		}, ""},
		"something else": {func(c net.Conn) { _, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := net.Pipe()
			done := make(chan struct{})
			go func() { defer close(done); c.say(client) }()
			got, read, err := peekServerName(t.Context(), server)
			if got != c.want || err != nil || len(read) == 0 {
				t.Errorf("%q, %d bytes, %v; want %q", got, len(read), err, c.want)
			}
			if c.want != "" && read[0] != 22 {
				t.Errorf("what was read begins with %d: a TLS server would not take it", read[0])
			}
			_, _ = client.Close(), server.Close()
			<-done
		})
	}
	client, server := net.Pipe()
	_ = client.Close()
	if _, _, err := peekServerName(t.Context(), server); err == nil {
		t.Error("a client that says nothing has a name")
	}
}

// The server behind it gets the bytes that were read for the name: the handshake goes on as if nobody had listened.
func TestAHandshakeGoesOnAfterItsNameWasHeard(t *testing.T) {
	client, middle := net.Pipe()
	relay, server := net.Pipe()
	handshake := make(chan error, 1)
	go func() {
		config := &tls.Config{ServerName: "a.example.com", MinVersion: tls.VersionTLS12}
		handshake <- tls.Client(client, config).HandshakeContext(t.Context())
	}()
	_, read, err := peekServerName(t.Context(), middle)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = relay.Write(read)
		_, _ = io.Copy(io.Discard, relay) // the server's alert, which it waits to have written
	}()
	var heard string
	_ = server.SetDeadline(time.Now().Add(generous))
	_ = tls.Server(server, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		heard = h.ServerName
		_ = client.Close()
		return nil, errHeard
	}}).HandshakeContext(t.Context())
	_ = relay.Close()
	if err := <-handshake; err == nil {
		t.Error("a handshake that was cut off has ended well")
	}
	if heard != "a.example.com" {
		t.Errorf("the server heard %q", heard)
	}
}
