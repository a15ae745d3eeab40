// SPDX-License-Identifier: Apache-2.0

package clusternetwork

// AccountAPIsPort is the port, at the addresses of a cluster's API server in the VPC, by which the API server finds the
// APIs that the account serves in its cluster: APIServices name it. Nothing listens there, so that machines and pods
// find nothing. The VPC's process alone knows it, and answers nobody but the API server.
const AccountAPIsPort = 10260
