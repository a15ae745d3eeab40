// SPDX-License-Identifier: Apache-2.0

package signerclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/mutualclient"
	"muster.dev/muster/internal/platform/termsafe"
)

const (
	// askTimeout bounds one question. A signer makes an RSA key meanwhile.
	askTimeout = 10 * time.Second
	// maxReason is how much of a refusal is said again, in bytes.
	maxReason = 500
)

// client asks one signer.
type client struct {
	url  string
	http *http.Client
}

func newClient(c component.Config) client {
	return client{c.Places.TokenSigner.URL(), mutualclient.New(c.Authority(authority.Cluster), c.Credential(component.CredentialPlane), component.ServerTokenSigner, askTimeout)}
}

func (c client) keys(ctx context.Context) (tokenkeys.Ring, error) {
	return c.ask(ctx, http.MethodGet, tokenkeys.PathKeys, nil)
}

// rotate gives an order, and gives it a second time if the answer is lost.
func (c client) rotate(ctx context.Context, o tokenkeys.Order) (tokenkeys.Ring, error) {
	body, err := tokenkeys.FormatOrder(o)
	if err != nil {
		return tokenkeys.Ring{}, err
	}
	ring, err := c.ask(ctx, http.MethodPost, tokenkeys.PathRotate, body)
	if _, refused := errors.AsType[*tokenkeys.Refused](err); err == nil || refused {
		return ring, err
	}
	return c.ask(ctx, http.MethodPost, tokenkeys.PathRotate, body)
}

func (c client) ask(ctx context.Context, method, path string, body []byte) (tokenkeys.Ring, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return tokenkeys.Ring{}, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return tokenkeys.Ring{}, fmt.Errorf("asking the token signer: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(response.Body, tokenkeys.MaxList+1))
	switch {
	case err != nil:
		return tokenkeys.Ring{}, fmt.Errorf("reading the token signer's answer: %w", err)
	case response.StatusCode == http.StatusConflict:
		return tokenkeys.Ring{}, &tokenkeys.Refused{Reason: reasonOf(raw)}
	case response.StatusCode != http.StatusOK:
		return tokenkeys.Ring{}, fmt.Errorf("the token signer answers %s: %s", response.Status, reasonOf(raw))
	}
	ring, err := tokenkeys.ParsePublic(raw)
	if err != nil {
		return tokenkeys.Ring{}, fmt.Errorf("the token signer's answer is no list of public keys: %w", err)
	}
	return ring, nil
}

// reasonOf is what a refusal says, in one line.
func reasonOf(raw []byte) string {
	return termsafe.Line(strings.TrimSpace(strings.ToValidUTF8(string(raw[:min(len(raw), maxReason)]), "")))
}
