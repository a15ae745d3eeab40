// SPDX-License-Identifier: Apache-2.0

// Package metricsgate lets those read a program's metrics that may get the path /metrics from the cluster's API server,
// as the components of Kubernetes do.
//
// A caller shows a client certificate, which the TLS server has verified, or a bearer token, which the API server
// reviews. An answer about it is kept for 30 seconds. While the API server does not answer, nobody new gets metrics.
package metricsgate
