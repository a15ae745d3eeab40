// SPDX-License-Identifier: Apache-2.0

// Package baseline holds the objects that every cluster of muster has: RBAC rules, the ConfigMap cluster-info, which a
// machine reads that has only the address, and the cluster's DNS. They are manifests below manifests/, filled in and
// applied at every start of the service, so that a rule deleted by accident comes back.
package baseline
