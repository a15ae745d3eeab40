// SPDX-License-Identifier: Apache-2.0

package connectproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxAnswer is how many bytes the head of an answer may have.
	maxAnswer = 8 << 10
	// tryAgain is how often a socket is tried at which nobody listens.
	tryAgain = 50 * time.Millisecond
)

// Through connects to a target by the proxy at a unix socket, and waits for that if nobody listens. A target that the
// proxy refuses is a [*Refused].
func Through(ctx context.Context, socket, target string, patience time.Duration) (net.Conn, error) {
	if strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, Refuse("%q is not a host and a port", target)
	}
	connection, err := dialSocket(ctx, socket, patience)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	if err := request(connection, target); err != nil {
		stop()
		return nil, errors.Join(err, connection.Close())
	}
	if !stop() {
		return nil, fmt.Errorf("connecting to %s: %w", target, context.Cause(ctx))
	}
	return connection, nil
}

// request has a proxy connect to a target.
func request(connection net.Conn, target string) error {
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: proxy\r\n\r\n", target); err != nil {
		return fmt.Errorf("asking the proxy to connect to %s: %w", target, err)
	}
	// Byte by byte: what comes after the answer is the target's, and a reader with a buffer would keep it.
	reader := bufio.NewReader(io.LimitReader(single{connection}, maxAnswer))
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("reading the proxy's answer about %s: %w", target, err)
	}
	_ = response.Body.Close()
	_, reason, _ := strings.Cut(response.Status, ": ")
	switch {
	case response.StatusCode == http.StatusForbidden:
		return Refuse("%s", reason)
	case response.StatusCode != http.StatusOK:
		return errors.New(reason)
	}
	return nil
}

// single reads one byte at a time.
type single struct{ from io.Reader }

func (s single) Read(into []byte) (int, error) { return s.from.Read(into[:min(1, len(into))]) }

// dialSocket tries again while nobody listens: a proxy that was killed is started again.
func dialSocket(ctx context.Context, socket string, patience time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			return connection, nil
		}
		if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
		timer := time.NewTimer(tryAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}
