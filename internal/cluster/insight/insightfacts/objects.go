// SPDX-License-Identifier: Apache-2.0

package insightfacts

import (
	"context"
	"errors"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/platform/release"
)

// page is how many objects of a resource are asked for: whether there are some matters, and not how many.
const page = 100

// ownPrefix begins the names of objects that Kubernetes makes for itself, such as the ClusterTrustBundle of the API server's
// certificate that kube-controller-manager 1.37 publishes: it makes them again.
const ownPrefix = "kubernetes.io:"

// list lists objects. The error says in EKS's words that they cannot be listed.
func list(ctx context.Context, api client.Client, into client.ObjectList, what string, options ...client.ListOption) error {
	if err := api.List(ctx, into, options...); err != nil {
		return errors.New("the " + what + " of the cluster cannot be listed")
	}
	return nil
}

// webhooks are those that fail closed and are answered by a Service.
func webhooks(ctx context.Context, api client.Client) (found []insight.Webhook, err error) {
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	if err := errors.Join(list(ctx, api, &validating, "webhooks"), list(ctx, api, &mutating, "webhooks")); err != nil {
		return nil, errors.New("the webhooks of the cluster cannot be listed")
	}
	add := func(uri string, w admissionregistrationv1.ValidatingWebhook) error {
		service := w.ClientConfig.Service
		if service == nil || w.FailurePolicy == nil || *w.FailurePolicy != admissionregistrationv1.Fail {
			return nil
		}
		ready, err := answered(ctx, api, service.Namespace, service.Name)
		found = append(found, insight.Webhook{
			URI: uri, Name: w.Name, Service: service.Namespace + "/" + service.Name, Ready: ready, Resources: asked(w.Rules),
			Some: chooses(w.NamespaceSelector) || chooses(w.ObjectSelector) || len(w.MatchConditions) > 0,
		})
		return err
	}
	const path = "/apis/admissionregistration.k8s.io/v1/"
	for i := range validating.Items {
		for _, w := range validating.Items[i].Webhooks {
			err = errors.Join(err, add(path+"validatingwebhookconfigurations/"+validating.Items[i].Name, w))
		}
	}
	for i := range mutating.Items {
		for _, w := range mutating.Items[i].Webhooks {
			err = errors.Join(err, add(path+"mutatingwebhookconfigurations/"+mutating.Items[i].Name, admissionregistrationv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, FailurePolicy: w.FailurePolicy, Rules: w.Rules,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
			}))
		}
	}
	return found, err
}

// chooses reports whether a selector leaves something out.
func chooses(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

// asked are the resources that rules are about when they are made or changed.
func asked(rules []admissionregistrationv1.RuleWithOperations) (resources []string) {
	writes := []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update}
	for _, rule := range rules {
		if !slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool { return slices.Contains(writes, o) }) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resources = append(resources, group+"/"+resource)
			}
		}
	}
	return resources
}

// answered reports whether a Service has an endpoint that is ready.
func answered(ctx context.Context, api client.Client, namespace, service string) (bool, error) {
	var slicesOf discoveryv1.EndpointSliceList
	err := list(ctx, api, &slicesOf, "endpoints", client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	return slices.ContainsFunc(slicesOf.Items, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
	}), err
}

// budgets are the PodDisruptionBudgets, with how many pods may be evicted if all are healthy.
func budgets(ctx context.Context, api client.Client) (found []insight.Budget, err error) {
	var all policyv1.PodDisruptionBudgetList
	if err := list(ctx, api, &all, "PodDisruptionBudgets"); err != nil {
		return nil, err
	}
	for i := range all.Items {
		b := &all.Items[i]
		pods := int(b.Status.ExpectedPods)
		found = append(found, insight.Budget{URI: "/apis/policy/v1/namespaces/" + b.Namespace + "/poddisruptionbudgets/" + b.Name, Pods: pods, Allowed: evictable(b.Spec, pods)})
	}
	return found, nil
}

// evictable is how many of some healthy pods a budget lets go (kubernetes pkg/controller/disruption): percentages are
// rounded up.
func evictable(spec policyv1.PodDisruptionBudgetSpec, pods int) int {
	switch {
	case spec.MaxUnavailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(spec.MaxUnavailable, pods, true)
		if err != nil {
			return pods
		}
		return n
	case spec.MinAvailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(spec.MinAvailable, pods, true)
		if err != nil {
			return pods
		}
		return pods - n
	}
	return pods - 1 // minAvailable is 1
}

// kinds are the CustomResourceDefinitions.
func kinds(ctx context.Context, api client.Client) (found []insight.Kind, err error) {
	var all apiextensionsv1.CustomResourceDefinitionList
	if err := list(ctx, api, &all, "CustomResourceDefinitions"); err != nil {
		return nil, err
	}
	for i := range all.Items {
		k := insight.Kind{URI: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + all.Items[i].Name, Stored: all.Items[i].Status.StoredVersions, Served: map[string]bool{}}
		for _, version := range all.Items[i].Spec.Versions {
			k.Served[version.Name] = version.Served
		}
		found = append(found, k)
	}
	return found, nil
}

// stored counts the objects of resources that are new in a minor, but for those that Kubernetes makes for itself.
func stored(ctx context.Context, api client.Client, minor string) (found []insight.Stored, err error) {
	of, err := release.All().OfMinor(minor)
	if err != nil {
		return nil, errors.New("which kinds are new in the version of the cluster is not known")
	}
	for _, one := range of.Kinds {
		kind := schema.GroupVersionKind(one)
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := api.List(ctx, all, client.Limit(page))
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // the cluster does not serve it
			continue
		case err != nil:
			return nil, errors.New("the objects of kind " + kind.Kind + " cannot be listed")
		}
		others := slices.DeleteFunc(all.Items, func(o metav1.PartialObjectMetadata) bool { return strings.HasPrefix(o.Name, ownPrefix) })
		found = append(found, insight.Stored{URI: "/apis/" + kind.GroupVersion().String() + "/" + kind.Kind, Objects: len(others)})
	}
	return found, nil
}
