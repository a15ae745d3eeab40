// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// ManagedBy is the value of the label [discoveryv1.LabelManagedBy] on slices of upstream's controller. Only those are
// changed: that controller writes again what is true when a shift is over.
const ManagedBy = "endpointslice-controller.k8s.io"

// Patch returns the merge patch that has the API server look at a slice again, or nil if the slice is as the shifted
// zones say. A slice of a zone that is shifted no more loses its label, which makes its controller write it again.
func Patch(slice *discoveryv1.EndpointSlice, zones []string) []byte {
	if slice.Labels[discoveryv1.LabelManagedBy] != ManagedBy {
		return nil
	}
	if zone, marked := slice.Labels[v1alpha1.LabelZonalShift]; marked && !slices.Contains(zones, zone) {
		return []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelZonalShift + `":null}}}`)
	}
	if slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return inZone(e, zones) && !isOut(e) }) {
		return []byte(`{}`)
	}
	return nil
}

// Probe returns a slice with an endpoint of a zone. An API server that is asked to make it without storing it answers
// with the label of the shift if it follows the policy.
func Probe(zone string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: PolicyName, Labels: map[string]string{discoveryv1.LabelManagedBy: ManagedBy}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Zone: &zone}},
	}
}

func inZone(e discoveryv1.Endpoint, zones []string) bool {
	return e.Zone != nil && slices.Contains(zones, *e.Zone)
}

// isOut reports whether nobody sends to an endpoint. Conditions that are not known stand for true.
func isOut(e discoveryv1.Endpoint) bool {
	ready, serving := e.Conditions.Ready, e.Conditions.Serving
	return ready != nil && !*ready && serving != nil && !*serving
}

// Stranded are the Services, as namespace/name, that have pods in the shifted zones and no ready pod elsewhere, sorted.
func Stranded(all []discoveryv1.EndpointSlice, zones []string) []string {
	inside, elsewhere := map[string]bool{}, map[string]bool{}
	for i := range all {
		service := all[i].Namespace + "/" + all[i].Labels[discoveryv1.LabelServiceName]
		for _, e := range all[i].Endpoints {
			switch {
			case inZone(e, zones):
				inside[service] = true
			case e.Conditions.Ready == nil || *e.Conditions.Ready:
				elsewhere[service] = true
			}
		}
	}
	var stranded []string
	for service := range inside {
		if !elsewhere[service] {
			stranded = append(stranded, service)
		}
	}
	slices.Sort(stranded)
	return stranded
}
