// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/component"
)

// probeTimeout bounds one question.
const probeTimeout = 2 * time.Second

// probe asks a component once whether it serves; nil means yes, and the error says what it answered instead.
// Files are read anew each time: they may not exist yet, and certificates are renewed. At a socket it is the process by
// that answers, not one before it that still has the socket; any process if 0.
func probe(ctx context.Context, p component.Probe, by int) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.CAFile != "" {
		raw, err := os.ReadFile(p.CAFile)
		if err != nil {
			return fmt.Errorf("reading authority for the probe: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(raw)
	}
	if p.CredentialFile != "" {
		pair, err := tls.LoadX509KeyPair(p.CredentialFile, p.CredentialFile)
		if err != nil {
			return fmt.Errorf("reading credential for the probe: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	if p.Socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			connection, err := d.DialContext(ctx, "unix", p.Socket)
			if err != nil || by == 0 {
				return connection, err
			}
			if err := listens(connection, by); err != nil {
				return nil, errors.Join(err, connection.Close())
			}
			return connection, nil
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking %s: %w", p.URL, err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if nobodyListens(err) {
		return fmt.Errorf("it does not listen at %s", cmp.Or(p.Socket, request.URL.Host))
	}
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 16<<10))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d: %s", p.URL, answer.StatusCode, failing(body))
	}
	return nil
}

// listens returns an error unless a process listens at the other end of a connection to a unix socket.
func listens(connection net.Conn, pid int) error {
	raw, err := connection.(*net.UnixConn).SyscallConn() //nolint:forcetypeassert // to a unix socket
	if err != nil {
		return err
	}
	var listener *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		listener, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("asking which process listens: %w", err)
	}
	if int(listener.Pid) != pid {
		return fmt.Errorf("process %d listens there, not yet process %d", listener.Pid, pid)
	}
	return nil
}

// nobodyListens reports whether a connection failed for the reason that every process has that starts.
func nobodyListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// failing picks the lines of a Kubernetes health answer that name a check that fails ("[-]etcd failed").
func failing(body []byte) string {
	var lines []string
	for line := range bytes.Lines(body) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "[-]"); ok {
			lines = append(lines, text)
		}
	}
	if len(lines) == 0 {
		return strings.TrimSpace(string(body[:min(len(body), 200)]))
	}
	return strings.Join(lines, "; ")
}
