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
	"strings"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/platform/termsafe"
)

// ClientConfig says where the service is.
type ClientConfig struct {
	Socket string // an absolute path, where the service is on this host
	// Address is host:port, instead of Socket.
	Address string
	// Credential of this client.
	Credential Credential
	// Timeout of one question; 5 s if 0.
	Timeout time.Duration
	// StaleAfter is how long after the last event what was answered before may be used; StaleAfter if 0.
	StaleAfter time.Duration
	// QuietAfter is how long a stream may say nothing before another is begun; StaleAfter, the constant, or the field
	// if that is less, if 0.
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

var _ Verifier = (*Client)(nil)

// NewClient makes a client. Nothing is asked yet.
func NewClient(c ClientConfig) (*Client, error) {
	switch {
	case c.Socket != "" && c.Address != "":
		return nil, fmt.Errorf("the identity service is either on the socket %s or at the address %s", c.Socket, c.Address)
	case c.Address == "" && !filepath.IsAbs(c.Socket):
		return nil, fmt.Errorf("the socket of the identity service, %q, is not an absolute path", c.Socket)
	case c.Logger == nil:
		return nil, errors.New("a client of the identity service needs a logger")
	}
	secured, err := c.Credential.client()
	if err != nil {
		return nil, err
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
			DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
			TLSClientConfig:     secured,
			TLSHandshakeTimeout: c.Timeout,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: c.Timeout,
			MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// where names the service in errors.
func (c ClientConfig) where() string {
	if c.Address != "" {
		return c.Address
	}
	return c.Socket
}

// service is the URL of the service, whose certificate is for one name wherever it is.
const service = "https://" + caller.ServerName

// Verify asks who made a token. A "no" is *Unknown.
func (c *Client) Verify(ctx context.Context, q Question) (Maker, error) {
	var a Answer
	if err := c.ask(ctx, PathVerify, q, &a); err != nil {
		return Maker{}, fmt.Errorf("asking the identity service who made a token: %w", err)
	}
	m, err := a.Maker()
	if err != nil {
		return Maker{}, fmt.Errorf("reading the identity service's answer about a token: %w", err)
	}
	return m, nil
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
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, service+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("the identity service does not answer on %s: %w", c.config.where(), err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the identity service's answer on %s: %w", c.config.where(), err)
	case len(raw) > MaxAnswer:
		return fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	case response.StatusCode == http.StatusOK:
		return decode(raw, answer)
	case response.StatusCode == http.StatusNotFound:
		var no Refusal
		if err := decode(raw, &no); err != nil || no.Code == "" {
			return fmt.Errorf("the service on %s answers %s without a reason: it is not muster's identity service, or another version", c.config.where(), response.Status)
		}
		return &Unknown{Code: no.Code, Reason: no.Reason, Rule: no.Rule, Fix: no.Fix}
	case response.StatusCode == http.StatusForbidden: // it says whom it does not answer; a question is not repeated in it
		return fmt.Errorf("the identity service on %s answers %s: %s", c.config.where(), response.Status, reasonOf(raw))
	}
	return fmt.Errorf("the identity service answers %s", response.Status)
}

func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return errors.New("the answer is not the JSON that was expected") // the error of encoding/json may quote it
	}
	return nil
}

// reasonOf is what a refusal of the service itself says, in one line.
func reasonOf(raw []byte) string {
	return termsafe.Line(strings.TrimSpace(strings.ToValidUTF8(string(raw[:min(len(raw), maxReason)]), "")))
}
