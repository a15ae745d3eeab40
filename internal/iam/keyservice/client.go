// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/iam/sigv4"
)

// ClientConfig says where the service is.
type ClientConfig struct {
	Socket string // an absolute path
	// Timeout of one question; 5 s if 0.
	Timeout time.Duration
	// StaleAfter is how long after the last event what was answered before may be used; StaleAfter if 0.
	StaleAfter time.Duration
	// QuietAfter is how long a stream may say nothing before another is begun; StaleAfter, the constant, or the field if that is less, if 0.
	QuietAfter time.Duration
	Now        func() time.Time // time.Now if nil
	Logger     *slog.Logger
}

// Client asks the service. It may be used by many at once.
type Client struct {
	config ClientConfig
	http   *http.Client
	start  time.Time
	// heard is when the last event came, in nanoseconds after start; 0 before the first.
	heard atomic.Int64
}

var _ Keys = (*Client)(nil)

// NewClient makes a client. Nothing is asked yet.
func NewClient(c ClientConfig) (*Client, error) {
	switch {
	case !filepath.IsAbs(c.Socket):
		return nil, fmt.Errorf("the socket of the identity service, %q, is not an absolute path", c.Socket)
	case c.Logger == nil:
		return nil, errors.New("a client of the identity service needs a logger")
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = StaleAfter
	}
	if c.QuietAfter <= 0 {
		c.QuietAfter = min(c.StaleAfter, StaleAfter)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Client{config: c, start: c.Now(), http: &http.Client{
		Transport: &http.Transport{
			DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, c.Socket) },
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: c.Timeout,
			MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Resolve asks for the owner of a key. A "no" is *Unknown.
func (c *Client) Resolve(ctx context.Context, accessKeyID, sessionToken string, scope sigv4.Scope) (Resolved, error) {
	var a Answer
	if err := c.ask(ctx, PathResolve, Query{AccessKeyID: accessKeyID, SessionToken: sessionToken, Scope: ScopeOf(scope)}, &a); err != nil {
		return Resolved{}, fmt.Errorf("asking the identity service about key %.128q: %w", accessKeyID, err)
	}
	r, err := a.Resolved()
	if err != nil {
		return Resolved{}, fmt.Errorf("reading the identity service's answer about key %.128q: %w", accessKeyID, err)
	}
	return r, nil
}

// RoleCredentials asks for the credentials of an instance's profile. A "no" is *Unknown.
func (c *Client) RoleCredentials(ctx context.Context, instanceID string) (RoleCredentials, error) {
	var r RoleCredentials
	if err := c.ask(ctx, PathRoleCredentials, InstanceQuery{InstanceID: instanceID}, &r); err != nil {
		return RoleCredentials{}, fmt.Errorf("asking the identity service for the credentials of %.64q: %w", instanceID, err)
	}
	if r.AccessKeyID == "" || r.SecretAccessKey == "" || r.SessionToken == "" || r.Expiration.IsZero() {
		return RoleCredentials{}, fmt.Errorf("the identity service's credentials of %.64q are not whole", instanceID)
	}
	return r, nil
}

// ask sends one question. The content of a body is never a part of an error: it may be a secret.
func (c *Client) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if len(body) > MaxQuery {
		return &Unknown{Code: "InvalidClientTokenId", Reason: fmt.Sprintf("the question has %d bytes; at most %d are answered", len(body), MaxQuery)}
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://identity"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("the identity service does not answer on %s: %w", c.config.Socket, err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the identity service's answer on %s: %w", c.config.Socket, err)
	case len(raw) > MaxAnswer:
		return fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	case response.StatusCode == http.StatusOK:
		return decode(raw, answer)
	case response.StatusCode == http.StatusNotFound:
		var no Refusal
		if err := decode(raw, &no); err != nil || no.Code == "" {
			return fmt.Errorf("the service on %s answers %s without a reason: it is not muster's identity service, or another version", c.config.Socket, response.Status)
		}
		return &Unknown{Code: no.Code, Reason: no.Reason}
	}
	return fmt.Errorf("the identity service answers %s", response.Status)
}

func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return errors.New("the answer is not the JSON that was expected") // the error of encoding/json may quote it
	}
	return nil
}
