// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"context"
	"testing"
)

// Keep reads for a server that does not serve, until the test ends.
func Keep(t *testing.T, s *Server) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.keeper.run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}
