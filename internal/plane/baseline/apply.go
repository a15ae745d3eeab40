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
// own. Objects that are for others to fill in are created, and left alone from then on. Nothing is written when all of
// them are as they are to be, which an etcd lives by that takes no writes.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetAnnotations()[onceAnnotation] == "once" {
			if _, err := ensure(ctx, c, object); err != nil {
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

// ensure creates an object that is not there, and returns what is there. It writes nothing if there is one: an etcd that
// takes no writes refuses to create what is there, too, and does not say that it is.
func ensure[T client.Object](ctx context.Context, c client.Client, wanted T) (T, error) {
	is := wanted.DeepCopyObject().(T) //nolint:forcetypeassert // the copy of one
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), is)
	if apierrors.IsNotFound(err) {
		is = wanted.DeepCopyObject().(T) //nolint:forcetypeassert // the copy of one
		if err = c.Create(ctx, is, FieldOwner); apierrors.IsAlreadyExists(err) {
			err = c.Get(ctx, client.ObjectKeyFromObject(wanted), is)
		}
	}
	return is, err
}
