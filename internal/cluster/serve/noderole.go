// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"

	"muster.dev/muster/internal/cluster/clusteraccess"
)

// removeNodeRole removes the node role of a cluster that is gone.
func (c clusterHosts) removeNodeRole(ctx context.Context, namespace string) error {
	if err := clusteraccess.RemoveOwnRole(ctx, c.api, c.identityStore(), namespace); err != nil {
		return fmt.Errorf("removing the node role of cluster %s: %w", namespace, err)
	}
	return nil
}
