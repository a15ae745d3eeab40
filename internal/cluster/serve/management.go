// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1/crds"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
)

// control sets the management plane up once it is ready, and then serves identities and the documents of issuers until the context ends. Whatever fails is
// tried again: an API server may go away at any moment.
func (s *Service) control(ctx context.Context, account component.Account) {
	scheme, err := Scheme()
	if err != nil {
		s.cfg.Log.Error("setting up", "error", err)
		return
	}
	if err := retry(ctx, "setting up the management plane", s.say, func(ctx context.Context) error {
		return s.setUpManagement(ctx, scheme, account)
	}); err != nil {
		return
	}
	close(s.managed)
	var group sync.WaitGroup
	group.Go(func() { s.serveIssuers(ctx, account) })
	group.Go(func() {
		_ = retry(ctx, "running the account's controllers", s.say, func(ctx context.Context) error { return s.runAccountControllers(ctx, scheme, account) })
	})
	group.Go(func() { s.keepVPCs(ctx, scheme, account) })
	s.serveIdentity(ctx, scheme, account)
	group.Wait()
}

// setUpManagement teaches the management plane muster's kinds, and makes the objects that it always has.
func (s *Service) setUpManagement(ctx context.Context, scheme *runtime.Scheme, account component.Account) error {
	if err := answers(ctx, s.managementREST(account), kindsPath); err != nil {
		return err
	}
	api, err := s.managementClient(account, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := applyKinds(ctx, api); err != nil {
		return err
	}
	objects, err := baseline.Management()
	if err != nil {
		return err
	}
	return baseline.Apply(ctx, api, objects)
}

// applyKinds creates or updates the definitions of muster's kinds, and waits until they are served.
func applyKinds(ctx context.Context, api client.Client) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	return applyDefinitions(ctx, api, definitions)
}

// applyDefinitions creates or updates definitions of kinds, and waits until they are served.
func applyDefinitions(ctx context.Context, api client.Client, definitions []*apiextensionsv1.CustomResourceDefinition) error {
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

// served waits until the objects of a kind can be made, which is as soon as its names are accepted, and has it shown to all who ask what
// the plane has. The generic control plane takes itself for one of three, and so leaves the condition Established, and with it discovery,
// for five seconds; and a request that makes an object within two seconds of a change of that condition, at any API server, waits for two more, that
// the others may have heard of it (apiextensions-apiserver, pkg/apiserver/customresource_handler.go, masterCount and justCreated). This one is alone:
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
		if err := pause(ctx, pollInterval/10); err != nil {
			return err
		}
	}
}

const (
	// newFor is how long an API server takes a kind for new, whose times are whole seconds.
	newFor = 3 * time.Second
	// establishedFor is longer than that.
	establishedFor = time.Minute
)
