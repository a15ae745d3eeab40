// SPDX-License-Identifier: Apache-2.0

// Package controlsocket is the unix socket by which the command line asks a running service: /status, /reload, /rotate,
// /token-keys/rotate, /pods, /healthz, /readyz and /metrics. Only the owner of the state directory can connect; whoever
// can is trusted with everything.
//
// What happens if
//
//	no service listens                      the client's error is [ErrNotRunning]
//	a service is stopped, or the host busy  the client's error is [ErrSlow] after 20 seconds: a second service must not be started
//	the service ends while it is asked      [ErrNotRunning]
//	a killed service left its socket        the next service replaces it
package controlsocket
