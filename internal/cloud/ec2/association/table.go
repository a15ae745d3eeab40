// SPDX-License-Identifier: Apache-2.0

package association

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TableOf returns the id of the route table of a subnet of a VPC: its own, or else the main one.
func TableOf(ctx context.Context, management client.Reader, vpc, subnet string) (string, error) {
	all, err := associationRecords.List(ctx, management)
	if err != nil {
		return "", fmt.Errorf("listing associations of route tables: %w", err)
	}
	of := Associations{}
	for i := range all {
		if all[i].Data.VPC == vpc {
			of = all[i].Data
		}
	}
	of.complete(vpc, []string{subnet})
	if own, ok := of.Tables[subnet]; ok {
		return own.To, nil
	}
	return of.Main.To, nil
}
