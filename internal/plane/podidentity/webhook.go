// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/mutualclient"
	"muster.dev/muster/internal/platform/termsafe"
)

const (
	// tellTimeout bounds one telling.
	tellTimeout = 5 * time.Second
	// tellAgain is how long after a telling the webhook is told the same again: it may have lost it.
	tellAgain = 30 * time.Second
	maxReason = 500
)

// Webhook tells the pod identity webhook of one cluster which service accounts have an association. It is safe for use
// by many at once.
type Webhook struct {
	url, before string
	http        *http.Client

	mu   sync.Mutex
	told []byte
	at   time.Time
}

// NewWebhook tells nothing yet.
func NewWebhook(c component.Config) *Webhook {
	return &Webhook{
		url: c.PodAssociationsURL(), before: c.PodAssociationsBefore(),
		http: mutualclient.New(c.Authority(authority.Cluster), c.Credential(component.CredentialPlane), component.UserPodWebhook, tellTimeout),
	}
}

// Tell returns when the webhook has the list on its disk. A webhook that was told so a moment ago is not told again.
func (w *Webhook) Tell(ctx context.Context, accounts []ServiceAccount, now time.Time) error {
	if accounts == nil {
		accounts = []ServiceAccount{}
	}
	raw, err := json.Marshal(map[string]any{"identities": accounts})
	if err != nil {
		return fmt.Errorf("encoding associations: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if since := now.Sub(w.at); bytes.Equal(raw, w.told) && since >= 0 && since < tellAgain {
		return nil
	}
	if err := w.put(ctx, raw); err != nil {
		w.told = nil
		return err
	}
	w.told, w.at = raw, now
	if err := os.Remove(w.before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the file of associations of before: %w", err)
	}
	return nil
}

func (w *Webhook) put(ctx context.Context, raw []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, w.url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := w.http.Do(request)
	if err != nil {
		return fmt.Errorf("telling the pod identity webhook of associations: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReason))
	switch {
	case err != nil:
		return fmt.Errorf("reading the pod identity webhook's answer: %w", err)
	case response.StatusCode != http.StatusNoContent:
		return fmt.Errorf("the pod identity webhook answers %s: %s", response.Status, termsafe.Line(strings.TrimSpace(strings.ToValidUTF8(string(answer), ""))))
	}
	return nil
}

// Convert finds the file that the service wrote before it told the webhook of a cluster by TLS, and returns what copies
// the file into the directory of the webhook; nil if there is no such file, or the webhook was told since.
func Convert(c component.Config) (func() error, error) {
	if _, err := os.Stat(c.PodAssociations()); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	raw, err := os.ReadFile(c.PodAssociationsBefore())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading associations: %w", err)
	}
	return func() error {
		if err := os.MkdirAll(filepath.Dir(c.PodAssociations()), 0o700); err != nil {
			return fmt.Errorf("making directory of associations: %w", err)
		}
		return atomicfile.Write(c.PodAssociations(), raw, 0o600)
	}, nil
}
