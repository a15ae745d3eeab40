// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

// Service reads a Service with its EndpointSlices and Events, and returns its facts: whether it has a target that is
// ready, and the address of a load balancer where it asks for one.
func Service(ctx context.Context, api client.Reader, at Place, now time.Time) (diagnosis.Facts, error) {
	var service corev1.Service
	if err := readOne(ctx, api, at, &service); err != nil {
		return diagnosis.Facts{}, err
	}
	f := diagnosis.Facts{Kind: "service", Name: at.String(), Names: at.names(), Since: service.CreationTimestamp.Time, Patience: podPatience, Healthy: true}
	e := diagnosis.Evidence{Source: cause.FromService, Object: "service/" + at.String(), Look: "kubectl describe service " + at.names()["$NAME"]}
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer && len(service.Status.LoadBalancer.Ingress) == 0 {
		f.Healthy = false
		e.Code, e.Text = "LoadBalancer/NoAddress", "it has no address of a load balancer"
		f.Evidence = append(f.Evidence, e)
	}
	if len(service.Spec.Selector) > 0 { // the targets of another Service are somebody else's
		var slices discoveryv1.EndpointSliceList
		if err := read(ctx, api, &slices, client.InNamespace(at.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: at.Name}); err != nil {
			f.Unseen = append(f.Unseen, diagnosis.Unseen{What: "the EndpointSlices of " + at.String(), Why: err.Error()})
		} else if ready, all := targets(slices.Items); ready == 0 {
			f.Healthy = false
			e.Code, e.Trouble, e.Look = "Endpoints/NoneReady", true, "kubectl get endpointslices --namespace "+at.Namespace+" --selector "+discoveryv1.LabelServiceName+"="+at.Name
			e.Text = fmt.Sprintf("none of its %d targets is ready", all)
			f.Evidence = append(f.Evidence, e)
		}
	}
	if !f.Healthy {
		addEvents(ctx, &f, api, "Service", at, now)
	}
	return f, nil
}

// targets counts the targets of a Service.
func targets(slices []discoveryv1.EndpointSlice) (ready, all int) {
	for i := range slices {
		for _, endpoint := range slices[i].Endpoints {
			all++
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready { // nil is to be taken for true (discovery/v1)
				ready++
			}
		}
	}
	return ready, all
}
