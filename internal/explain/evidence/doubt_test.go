// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/evidence"
)

// stuck is an API server that accepts, and never answers.
type stuck struct{ client.Reader }

func (stuck) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// A cluster whose API server hangs holds the explanation up once, not for each kind.
func TestClusterThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := snapshot(evidence.Cluster{})
		s.ReadCluster(t.Context(), "home", stuck{})
		if took := time.Since(begun); took > 10*time.Second || len(s.Of["home"].Unseen) != 3 {
			t.Errorf("it took %s: %+v", took, s.Of["home"])
		}
	})
}
