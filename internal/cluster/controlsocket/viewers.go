// SPDX-License-Identifier: Apache-2.0

package controlsocket

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"muster.dev/muster/internal/iam/viewer"
)

// ProveViewer asks who made a token for a console.
func (c *Client) ProveViewer(ctx context.Context, p viewer.Proof) (viewer.Viewer, error) {
	return post[viewer.Viewer](ctx, c, "/viewers/prove", p)
}

// DecideViewer asks IAM about somebody who looks at the console. There is an answer for each question.
func (c *Client) DecideViewer(ctx context.Context, d viewer.Decision) ([]viewer.Refusal, error) {
	answers, err := post[[]viewer.Refusal](ctx, c, "/viewers/decide", d)
	if err == nil && len(answers) != len(d.Questions) {
		return nil, fmt.Errorf("the service answered %d of %d questions", len(answers), len(d.Questions))
	}
	return answers, err
}

// RequestOfViewer does a request of EKS's API as somebody who looks at the console.
func (c *Client) RequestOfViewer(ctx context.Context, r viewer.Request) (viewer.Refusal, error) {
	return post[viewer.Refusal](ctx, c, "/viewers/request", r)
}

// post sends a value as JSON, and reads one.
func post[Out any](ctx context.Context, c *Client, path string, value any) (out Out, err error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return out, fmt.Errorf("writing the request: %w", err)
	}
	body, err := c.send(ctx, http.MethodPost, path, bytes.NewReader(raw))
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("reading the service's answer: %w", err)
	}
	return out, nil
}
