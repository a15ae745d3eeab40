// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/ecrcredential"
	"muster.dev/muster/internal/node/render"
)

// credentialPatience is how long the credentials of a role and the answer of ECR may take.
const credentialPatience = 20 * time.Second

// CalledCredentialProvider reports whether a program name is that of the kubelet's credential provider for ECR.
func CalledCredentialProvider(name string) bool {
	return filepath.Base(name) == render.CredentialProvider
}

// RunCredentialProvider answers the kubelet, and returns the exit code.
func RunCredentialProvider(s terminal.Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, credentialPatience)
	defer cancel()
	if err := ecrcredential.Answer(ctx, s.In, s.Out, time.Now(), ecrcredential.Get); err != nil {
		fmt.Fprintf(s.Err, "Error: %v\n", err)
		return 1
	}
	return 0
}
