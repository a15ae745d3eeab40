// SPDX-License-Identifier: Apache-2.0

// Package kinddefinitions creates or updates CustomResourceDefinitions at an API server, and waits until their objects
// can be made. It expects an API server that is the only one of its plane, and so does not wait for others to hear of a
// kind.
package kinddefinitions

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pollInterval is the pause before a definition is read again.
	pollInterval = 10 * time.Millisecond
	// newFor is how long an API server takes a kind for new, whose times are whole seconds.
	newFor = 3 * time.Second
	// establishedFor is longer than that.
	establishedFor = time.Minute
	// heardIn is far longer than an API server takes to hear of a kind that it has established.
	heardIn = 10 * time.Second
	// atOnce is how many kinds are asked about at a time: most of it is waiting for etcd's disk.
	atOnce = 4
)

// Apply creates or updates definitions of kinds, and waits until they are served.
func Apply(ctx context.Context, api client.Client, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	return each(ctx, definitions, func(ctx context.Context, wanted *apiextensionsv1.CustomResourceDefinition) error {
		if err := define(ctx, api, wanted); err != nil {
			return fmt.Errorf("defining kind %s: %w", wanted.Spec.Names.Kind, err)
		}
		return served(ctx, api, wanted)
	})
}

// Begin waits until an API server answers for the objects of kinds that it serves. It makes the storage of a kind when it is first asked
// for an object, and refuses to list and watch from it until that is filled, with the wish to be asked again after a second
// (apiserver, pkg/storage/cacher): whoever lists a new kind first would wait for that long.
func Begin(ctx context.Context, api client.Client, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	return each(ctx, definitions, func(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: storedVersion(definition.Spec), Kind: definition.Spec.Names.Kind + "List"})
		for began := time.Now(); ; {
			err := api.List(ctx, objects, client.Limit(1))
			if err == nil {
				return nil
			}
			if !apierrors.IsNotFound(err) || time.Since(began) > heardIn { // before, the server may not have heard of the kind by its own watch
				return fmt.Errorf("asking for the first object of kind %s: %w", definition.Spec.Names.Kind, err)
			}
			if err := pause(ctx); err != nil {
				return err
			}
		}
	})
}

// each does something with some definitions at a time, until it fails.
func each(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition, do func(context.Context, *apiextensionsv1.CustomResourceDefinition) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, definition := range definitions {
		group.Go(func() error { return do(ctx, definition) })
	}
	return group.Wait()
}

// define creates or updates the definition of a kind.
func define(ctx context.Context, api client.Client, wanted *apiextensionsv1.CustomResourceDefinition) error {
	current := &apiextensionsv1.CustomResourceDefinition{}
	err := api.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		return api.Create(ctx, wanted.DeepCopy())
	}
	if err != nil {
		return err
	}
	current.Spec = wanted.Spec
	return api.Update(ctx, current) // writes nothing when nothing differs
}

// served waits until the objects of a kind can be made, which is as soon as its names are accepted, and has it shown to
// all who ask what the plane has. The generic control plane takes itself for one of three, and so leaves the condition
// Established, and with it discovery, for five seconds; and a request that makes an object within two seconds of a
// change of that condition, at any API server, waits for two more, that the others may have heard of it
// (apiextensions-apiserver, pkg/apiserver/customresource_handler.go, masterCount and justCreated). This one is alone:
// the condition is set here, as of a moment that is past.
func served(ctx context.Context, api client.Client, wanted *apiextensionsv1.CustomResourceDefinition) error {
	for {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(wanted), current); err != nil {
			return fmt.Errorf("waiting for kind %s: %w", wanted.Spec.Names.Kind, err)
		}
		established := apihelpers.FindCRDCondition(current, apiextensionsv1.Established)
		is := established != nil && established.Status == apiextensionsv1.ConditionTrue
		if is && time.Since(established.LastTransitionTime.Time) > newFor {
			return nil
		}
		names := apihelpers.FindCRDCondition(current, apiextensionsv1.NamesAccepted)
		if !is && names != nil && names.Status == apiextensionsv1.ConditionFalse { // another kind has them, maybe for ever
			return fmt.Errorf("establishing kind %s: its names are not accepted: %s", wanted.Spec.Names.Kind, names.Message)
		}
		if is || names != nil && names.Status == apiextensionsv1.ConditionTrue {
			apihelpers.SetCRDCondition(current, apiextensionsv1.CustomResourceDefinitionCondition{
				Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, Reason: "InitialNamesAccepted",
				Message: "the initial names have been accepted",
			})
			apihelpers.FindCRDCondition(current, apiextensionsv1.Established).LastTransitionTime = metav1.NewTime(time.Now().Add(-establishedFor))
			switch err := api.Status().Update(ctx, current); {
			case err == nil:
				return nil
			case !apierrors.IsConflict(err): // else another writer was faster, and it is looked again
				return fmt.Errorf("establishing kind %s: %w", wanted.Spec.Names.Kind, err)
			}
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pollInterval):
		return nil
	}
}
