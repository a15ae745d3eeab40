// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/keylock"
)

// Service is what the actions of a service work with.
type Service struct {
	// Name is the service's, as ARNs have it: ec2.
	Name string
	// Region is that of the account.
	Region string
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what
	// was written before. Nil for a service whose resources are no objects.
	Management client.Client
	// Pages seals the tokens of lists.
	Pages *nexttoken.Sealer
	// Locks have one change at a time of what a key names.
	Locks keylock.Locks
}

// ARN is the name of a resource of the caller's account in the region, such as vpc/vpc-0123.
func (s *Service) ARN(call *awsfront.Call, resource string) string {
	return arn.ARN{Partition: "aws", Service: s.Name, Region: s.Region, Account: call.Caller.Account(), Resource: resource}.String()
}

// Change reads an object, has it changed and writes it. Nobody else's change between reading and writing is lost: the
// API server refuses the write then, and all is done again. Errors of read and change are returned as they are, and so
// is what the API server says of the write.
func Change(ctx context.Context, plane client.Client, read func() (client.Object, error), change func() error) error {
	for {
		object, err := read()
		if err != nil {
			return err
		}
		before, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("a copy of %T is no object", object)
		}
		if err := change(); err != nil {
			return err
		}
		err = plane.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) || ctx.Err() != nil { // a status is written every few seconds
			return err //nolint:wrapcheck // the service says it in its own words
		}
	}
}
