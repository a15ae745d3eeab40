// SPDX-License-Identifier: Apache-2.0

// Package kinddefinitions creates or updates CustomResourceDefinitions at an API server, and waits until their objects
// can be made. It expects an API server that is the only one of its plane, and so does not wait for others to hear of a
// kind.
package kinddefinitions

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pollInterval is the pause before a definition is read again.
	pollInterval = 10 * time.Millisecond
	// newFor is how long an API server takes a kind for new, whose times are whole seconds.
	newFor = 3 * time.Second
	// establishedFor is longer than that.
	establishedFor = time.Minute
)

// Apply creates or updates definitions of kinds, and waits until they are served.
func Apply(ctx context.Context, api client.Client, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, wanted := range definitions {
		current := &apiextensionsv1.CustomResourceDefinition{}
		err := api.Get(ctx, client.ObjectKeyFromObject(wanted), current)
		switch {
		case apierrors.IsNotFound(err):
			err = api.Create(ctx, wanted.DeepCopy())
		case err == nil:
			current.Spec = wanted.Spec
			err = api.Update(ctx, current) // writes nothing when nothing differs
		}
		if err != nil {
			return fmt.Errorf("defining kind %s: %w", wanted.Spec.Names.Kind, err)
		}
	}
	for _, wanted := range definitions {
		if err := served(ctx, api, wanted); err != nil {
			return err
		}
	}
	return nil
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
		if is || apihelpers.IsCRDConditionTrue(current, apiextensionsv1.NamesAccepted) {
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}
