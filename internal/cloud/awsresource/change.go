// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change reads an object and the client that writes it, has it changed and writes it. Nobody else's change between
// reading and writing is lost: the API server refuses the write then, and all is done again. Errors of read and change
// are returned as they are; fault puts what the API server says of the write into the service's words.
func Change(ctx context.Context, read func() (client.Writer, client.Object, error), change func() error, fault func(error) error) error {
	for {
		plane, object, err := read()
		if err != nil {
			return err
		}
		before, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("a copy of %T is not an object", object)
		}
		if err := change(); err != nil {
			return err
		}
		err = plane.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err) || ctx.Err() != nil: // a status is written every few seconds
			return fault(err)
		}
	}
}
