// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhook is what both kinds of admission webhooks have that matters here.
type webhook struct {
	kind, configuration, name string
	service                   *admissionregistrationv1.ServiceReference
	failure                   *admissionregistrationv1.FailurePolicyType
	namespaces, objects       *metav1.LabelSelector
	conditions                int
	rules                     []admissionregistrationv1.RuleWithOperations
}

// lastChange is when the targets of a Service changed last, as the controllers of EndpointSlices note it
// (k8s.io/api/core/v1, EndpointsLastChangeTriggerTime).
const lastChange = "endpoints.kubernetes.io/last-change-trigger-time"

// webhooks notes webhooks that fail closed, are asked about what nodes or pods begin with, and have no ready target.
func (r *configurationReader) webhooks(ctx context.Context) {
	for _, w := range r.listWebhooks(ctx) {
		about := w.about()
		if about == "" {
			continue
		}
		at, ready, err := r.ready(ctx, w.service)
		if err != nil {
			r.missed(fmt.Sprintf("the targets of Service %s/%s", w.service.Namespace, w.service.Name), err)
			continue
		}
		if !ready {
			r.see(at, w.kind+"/"+w.configuration, "Webhook/"+about, fmt.Sprintf("webhook %s: its Service %s/%s has no ready target, and its failurePolicy is Fail", w.name, w.service.Namespace, w.service.Name),
				"kubectl get "+w.kind+" "+w.configuration+" -o yaml")
		}
	}
}

// listWebhooks lists the webhooks of both kinds.
func (r *configurationReader) listWebhooks(ctx context.Context) []webhook {
	var all []webhook
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := read(ctx, r.api, &validating); err != nil {
		r.missed("the ValidatingWebhookConfigurations", err)
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			all = append(all, webhook{"validatingwebhookconfiguration", c.Name, w.Name, w.ClientConfig.Service, w.FailurePolicy, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions), w.Rules})
		}
	}
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	if err := read(ctx, r.api, &mutating); err != nil {
		r.missed("the MutatingWebhookConfigurations", err)
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			all = append(all, webhook{"mutatingwebhookconfiguration", c.Name, w.Name, w.ClientConfig.Service, w.FailurePolicy, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions), w.Rules})
		}
	}
	return all
}

// about returns the objects that a webhook which fails closed keeps away: Nodes for all that nodes begin with, Pods for
// pods, "" for neither. A webhook outside the cluster, or one of some objects only, counts for neither: whether it answers
// or is asked cannot be known here.
func (w webhook) about() string {
	some := func(s *metav1.LabelSelector) bool { return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 }
	if w.service == nil || w.failure != nil && *w.failure != admissionregistrationv1.Fail || w.conditions > 0 || some(w.objects) {
		return ""
	}
	switch {
	case w.matches("", "nodes"), w.matches("certificates.k8s.io", "certificatesigningrequests"), !some(w.namespaces) && w.matches("coordination.k8s.io", "leases"):
		return "Nodes"
	case !some(w.namespaces) && w.matches("", "pods"):
		return "Pods"
	}
	return ""
}

// matches reports whether a webhook is asked when an object of a kind is created.
func (w webhook) matches(group, resource string) bool {
	has := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(w.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		creates := slices.Contains(r.Operations, admissionregistrationv1.Create) || slices.Contains(r.Operations, admissionregistrationv1.OperationAll)
		return creates && has(r.APIGroups, group) && (has(r.Resources, resource) || slices.Contains(r.Resources, "*/*"))
	})
}

// ready reports whether a Service has a ready target, and since when its targets are as they are, if that is known.
func (r *configurationReader) ready(ctx context.Context, service *admissionregistrationv1.ServiceReference) (since time.Time, ready bool, err error) {
	var list discoveryv1.EndpointSliceList
	if err := read(ctx, r.api, &list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
		return time.Time{}, false, err
	}
	for i := range list.Items {
		if at, err := time.Parse(time.RFC3339Nano, list.Items[i].Annotations[lastChange]); err == nil && at.After(since) {
			since = at.UTC()
		}
	}
	is, _ := targets(list.Items)
	return since, is > 0, nil
}
