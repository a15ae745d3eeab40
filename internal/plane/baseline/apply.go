// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner is the name under which the API server remembers which fields are muster's (server-side apply).
const FieldOwner = client.FieldOwner("muster")

// onceAnnotation with the value "once" is on objects that muster makes for others to fill in.
const onceAnnotation = "muster.dev/apply"

// Apply creates or corrects the objects. Fields that muster does not set stay as they are; those it sets become its
// own. Objects that are for others to fill in are created, and left alone from then on.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetAnnotations()[onceAnnotation] == "once" {
			if err := c.Create(ctx, object.DeepCopy(), FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			continue
		}
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := c.Apply(ctx, config, FieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
