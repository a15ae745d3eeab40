// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/version"
)

// versionGood is how long an answer about the API server's version is good: long enough for machines that come in
// together, and too short to outlive the API server.
const versionGood = time.Second

// knownVersion is the last answer about the API server's version. Whoever holds turn may use the rest.
type knownVersion struct {
	turn  chan struct{}
	value string
	at    time.Time
}

// serverVersion is the API server's version, which simulated kubelets claim to have as well. It is asked once for nodes
// that come in together.
func (s *Simulator) serverVersion(ctx context.Context, transport http.RoundTripper) (string, error) {
	select {
	case s.known.turn <- struct{}{}:
		defer func() { <-s.known.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if s.known.value != "" && time.Since(s.known.at) < versionGood {
		return s.known.value, nil
	}
	value, err := s.askVersion(ctx, transport)
	if err == nil {
		s.known.value, s.known.at = value, time.Now()
	}
	return value, err
}

func (s *Simulator) askVersion(ctx context.Context, transport http.RoundTripper) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.APIServer+"/version", http.NoBody)
	if err != nil {
		return "", fmt.Errorf("asking for the API server's version: %w", err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", fmt.Errorf("asking for the API server's version: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&info); err != nil || info.GitVersion == "" {
		return "", fmt.Errorf("asking for the API server's version: %s: %w", response.Status, err)
	}
	return info.GitVersion, nil
}
