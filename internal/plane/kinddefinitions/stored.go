// SPDX-License-Identifier: Apache-2.0

package kinddefinitions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// hears is longer than an API server takes to hear of another stored version of a kind, which it writes objects in
	// from then on.
	hears = 3 * time.Second
	// pageSize is how many objects are listed at a time.
	pageSize = 500
)

// MoveToStored has all objects of kinds be stored in the version that their definition stores now, and drops the other
// versions from status.storedVersions: a later definition may then leave these out. Nothing is written for a kind whose
// objects are all stored so. It can be cut short at any point and called again. Objects keep their generation; all
// kinds are tried, whatever becomes of one.
func MoveToStored(ctx context.Context, api client.Client, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	var errs []error
	for _, definition := range definitions {
		if err := moveToStored(ctx, api, client.ObjectKeyFromObject(definition)); err != nil {
			errs = append(errs, fmt.Errorf("moving objects of kind %s to the version that is stored: %w", definition.Spec.Names.Kind, err))
		}
	}
	return errors.Join(errs...)
}

func moveToStored(ctx context.Context, api client.Client, name client.ObjectKey) error {
	current := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(ctx, name, current); err != nil {
		return err
	}
	stored := storedVersion(current.Spec)
	if isStored(current, stored) {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(hears):
	}
	if err := rewrite(ctx, api, schema.GroupVersionKind{Group: current.Spec.Group, Version: stored, Kind: current.Spec.Names.Kind}); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		is := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(ctx, name, is); err != nil {
			return err
		}
		if is.UID != current.UID || storedVersion(is.Spec) != stored {
			return errors.New("the definition changed meanwhile")
		}
		is.Status.StoredVersions = []string{stored}
		return api.Status().Update(ctx, is)
	})
}

// isStored reports whether no object of a kind is stored in another version.
func isStored(definition *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.Equal(definition.Status.StoredVersions, []string{version})
}

// storedVersion is the version that new objects of a kind are stored in. Every definition has exactly one.
func storedVersion(spec apiextensionsv1.CustomResourceDefinitionSpec) string {
	for _, version := range spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// rewrite has the API server write all objects of a kind as they are: it does so where the stored form is another one.
func rewrite(ctx context.Context, api client.Client, kind schema.GroupVersionKind) error {
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := api.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("listing them: %w", err)
		}
		for _, object := range page.Items {
			object.SetGroupVersionKind(kind)
			if err := api.Patch(ctx, &object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("writing %s: %w", client.ObjectKeyFromObject(&object), err)
			}
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}
