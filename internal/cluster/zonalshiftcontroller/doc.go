// SPDX-License-Identifier: Apache-2.0

// Package zonalshiftcontroller carries out the zonal shifts of one cluster, as package zonalshift decides about them. A
// look at the cluster brings everything to what the shifts say, in this order, and begins anew after whatever failed:
//
//	status.shiftedZones of the Cluster ──► Nodes of the zone ──► the policy ──► EndpointSlices ──► status of the shifts
//
// An API server takes a new policy up within a second (apiserver, policyRefreshInterval). It is asked every 100 ms to
// make a slice without storing it, whose answer shows that it has; then slices of the zone are written again. An API
// server beside it may be later: slices are looked at again after 2 s if anything was written, and else every 10 s while
// a shift is active, and the policy every 2 s.
//
//	What happens if                                 Then
//	the service is killed in the middle             the next one looks once at its start, also without a shift
//	a shift expires while the service is off        it is undone at the next start
//	the cluster's API server is away                the look fails and comes again; the shift is not Applied until then
//	a ZonalShift is deleted while it is active      it is undone, as if it had been cancelled
//	a Node joins or comes back in the zone          it is cordoned when it is seen
package zonalshiftcontroller
