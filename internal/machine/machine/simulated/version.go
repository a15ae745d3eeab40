// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/version"
)

// serverVersion is the API server's version, which simulated kubelets claim to have as well.
func (s *Simulator) serverVersion(ctx context.Context, transport http.RoundTripper) (string, error) {
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
