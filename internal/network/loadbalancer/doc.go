// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer describes load balancers: whose they are, their names and addresses, what they serve, and which
// descriptions are valid.
//
// Processes that know nothing of Kubernetes read the descriptions, so nothing of Kubernetes is imported here. A
// description is refused as a whole if one field of it is not valid; nothing is done.
package loadbalancer
