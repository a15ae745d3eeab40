// SPDX-License-Identifier: Apache-2.0

package routetable

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/ec2/association"
)

// Public returns a function that finds the route of a subnet of a VPC to an internet gateway, which makes it a public
// subnet: the ids of its route table and of the gateway. Both are empty for a private subnet.
func Public(management client.Reader) func(ctx context.Context, vpc, subnet string) (table, gateway string, err error) {
	return func(ctx context.Context, vpc, subnet string) (table, gateway string, err error) {
		of, err := association.TableOf(ctx, management, vpc, subnet)
		if err != nil {
			return "", "", err
		}
		all, err := awsrecord.Kind[KeptTable]{Type: tableType}.List(ctx, management)
		if err != nil {
			return "", "", fmt.Errorf("listing route tables: %w", err)
		}
		for i := range all {
			for _, route := range all[i].Data.Routes {
				if all[i].ID == of && strings.HasPrefix(route.Gateway, ec2id.InternetGateway.Prefix) {
					return of, route.Gateway, nil
				}
			}
		}
		return "", "", nil
	}
}
