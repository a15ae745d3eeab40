// SPDX-License-Identifier: Apache-2.0

// Package zonalshift decides about zonal shifts: which shift of a cluster is active, what a request to start, change or
// cancel one must hold, what becomes of Nodes and EndpointSlices of the zone, and the admission policy by which no
// Service reaches a pod there.
//
// The EndpointSlice controller and kube-proxy are upstream's, unmodified. While a shift is active, a
// MutatingAdmissionPolicy takes each endpoint of the zone for not ready and not serving, whatever the controller writes:
//
//	controller writes a slice ──► API server: endpoints of the zone get ready=false, serving=false ──► kube-proxy, DNS and balancers skip them
//
// The policy does not remove endpoints. Upstream's reconciler would miss them at each sync and, if more are missing than
// one slice has room for, make new slices for them each time (k8s.io/endpointslice, reconcileByPortMapping). An endpoint
// that is there with other conditions is written again to the same slice, which the policy changes back: the write
// changes nothing, the generation stays, and no event follows (endpointslice/util, EndpointSliceTracker).
//
// Each slice that the policy changes has the label [v1alpha1.LabelZonalShift]. Its removal after the shift changes the
// slice's generation, so that the controller looks at the Service again and writes what is true.
//
//	What happens if                              Then
//	all endpoints of a Service are in the zone   it has none: connections are refused. The shift names such Services
//	a Service publishes addresses not ready      the same: the policy decides after the controller
//	a Service is headless                        DNS does not answer with addresses of the zone
//	slices are made by somebody else             they are left alone: nobody could give back what they said
//	somebody deletes the policy                  it is made again, and slices are written again
//	a Node was cordoned before                   it stays cordoned after the shift
//	somebody uncordons a Node meanwhile          it stays so
//	two shifts are active                        the older one is applied, and the other one ends as cancelled
package zonalshift
