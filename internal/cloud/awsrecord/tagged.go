// SPDX-License-Identifier: Apache-2.0

package awsrecord

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/cloud/awsresource"
)

// Tagged returns the records of the kind with their tags, as the Resource Groups Tagging API lists them: as resources of
// a type, such as sqs:queue.
func (k Kind[T]) Tagged(ctx context.Context, api client.Reader, resourceType string, arn func(*Record[T]) string) ([]awsresource.Tagged, error) {
	all, err := k.List(ctx, api)
	if err != nil {
		return nil, err
	}
	tagged := make([]awsresource.Tagged, 0, len(all))
	for i := range all {
		tagged = append(tagged, awsresource.Tagged{ARN: arn(&all[i]), Type: resourceType, Tags: all[i].Tags})
	}
	return tagged, nil
}
