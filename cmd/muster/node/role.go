// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/termsafe"
)

// metadataTime is how long instance metadata may take: it is on the machine, or not there at all.
const metadataTime = 2 * time.Second

// metadata answers questions about the machine that this is.
type metadata interface {
	Metadata(ctx context.Context, path string) (string, error)
}

func machineMetadata() metadata { return imds.NewClient(imds.DefaultEndpoint) }

// clientByRole describes what a node shows the API server that has no client certificate: its machine's role, the
// session, and until when its credentials are good.
func clientByRole(ctx context.Context, from metadata) string {
	ctx, cancel := context.WithTimeout(ctx, metadataTime)
	defer cancel()
	const by = "This node joined by its machine's role and has no client certificate: it shows the API server tokens that are made anew all the time"
	role, session, until, err := machineRole(ctx, from)
	if err != nil {
		return fmt.Sprintf("%s. Instance metadata does not tell which role: %v", by, err)
	}
	return fmt.Sprintf("%s, by IAM role %s, session %s, credentials until %s.", by, role, session, instant(until))
}

func machineRole(ctx context.Context, from metadata) (role, session string, until time.Time, err error) {
	const credentials = "iam/security-credentials/"
	roles, err := from.Metadata(ctx, credentials)
	if err != nil {
		return "", "", time.Time{}, err
	}
	role, _, _ = strings.Cut(strings.TrimSpace(roles), "\n")
	if session, err = from.Metadata(ctx, "instance-id"); err != nil {
		return "", "", time.Time{}, err
	}
	raw, err := from.Metadata(ctx, credentials+role)
	if err != nil {
		return "", "", time.Time{}, err
	}
	var answer struct{ Expiration time.Time } // the secrets beside it are not even read
	if err := json.Unmarshal([]byte(raw), &answer); err != nil || answer.Expiration.IsZero() {
		return "", "", time.Time{}, fmt.Errorf("the credentials of role %s cannot be read", termsafe.Line(role))
	}
	return termsafe.Line(role), termsafe.Line(strings.TrimSpace(session)), answer.Expiration, nil
}
