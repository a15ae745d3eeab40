// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"time"

	"muster.dev/muster/internal/iam/ekstoken"
	"muster.dev/muster/internal/node/render"
)

// nodeCredential is what the node shows the API server: its certificate, or a token of its machine's role.
func nodeCredential(ctx context.Context, cluster, region string) (certificates []tls.Certificate, token string, err error) {
	if kubeconfig, err := os.ReadFile(render.PathKubeconfig); err == nil && render.JoinsByRole(kubeconfig) {
		made, err := ekstoken.Make(ctx, ekstoken.Request{Cluster: cluster, Region: region}, time.Now())
		if err != nil {
			return nil, "", fmt.Errorf("making a token of the machine's role: %w", err)
		}
		return nil, made.Reveal(), nil
	}
	certificate, err := tls.LoadX509KeyPair(clientCertificate, clientCertificate)
	if err != nil {
		return nil, "", fmt.Errorf("reading the node's certificate: %w", err)
	}
	return []tls.Certificate{certificate}, "", nil
}
