// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/api/v1alpha1/crds"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/kinddefinitions"
)

// SetUpManagement teaches the management plane muster's kinds, and makes the objects that it always has.
func SetUpManagement(ctx context.Context, api client.Client) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	if err := kinddefinitions.Apply(ctx, api, definitions); err != nil {
		return err
	}
	if err := kinddefinitions.Begin(ctx, api, definitions); err != nil {
		return err
	}
	objects, err := Management()
	if err != nil {
		return err
	}
	return Apply(ctx, api, objects)
}

// MoveManagementToStored has the objects of muster's kinds be stored in the versions that the management plane stores
// now.
func MoveManagementToStored(ctx context.Context, api client.Client) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	return kinddefinitions.MoveToStored(ctx, api, definitions)
}

// SetUpMembership makes the objects that a cluster has in the management plane for its components.
func SetUpMembership(ctx context.Context, api client.Client, c component.Config) error {
	objects, err := Membership(c)
	if err != nil {
		return err
	}
	return Apply(ctx, api, objects)
}

// SetUpCluster makes the objects that every cluster has. Its add-ons, and who gets in by IAM, are others' to set up.
func SetUpCluster(ctx context.Context, api client.Client, c component.Config) error {
	ca, err := os.ReadFile(c.Authority(authority.Cluster))
	if err != nil {
		return fmt.Errorf("reading authority of the cluster for its objects: %w", err)
	}
	objects, err := Cluster(c, ca)
	if err != nil {
		return err
	}
	if err := Apply(ctx, api, objects); err != nil {
		return err
	}
	endpoints, err := endpointsClient(api.Scheme(), c)
	if err != nil {
		return err
	}
	if err := applyEndpoints(ctx, endpoints, c); err != nil {
		return err
	}
	volumes, err := Volumes(c, v1alpha1.DefaultFileSystemID(account.DefaultID))
	if err != nil {
		return err
	}
	return Apply(ctx, api, volumes)
}

// PublishBundles puts the authorities of kubelets' certificates where everybody in the cluster can read them.
func PublishBundles(ctx context.Context, api client.Client, trusted []*x509.Certificate) error {
	var objects []*unstructured.Unstructured
	for _, name := range []string{bundle.Client, bundle.Serving} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bundle.ConfigMap(metav1.NamespaceSystem, name, trusted...))
		if err != nil {
			return err
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return Apply(ctx, api, objects)
}
