// SPDX-License-Identifier: Apache-2.0

// Package planeclient is the service's way into API servers: connections with its certificates, the kinds and resources
// that it speaks of, whether an API server answers yet, clients, and managers of controllers. It writes the
// administrator's kubeconfigs, too.
package planeclient
