// SPDX-License-Identifier: Apache-2.0

// Package host gives access to the Linux machine that muster runs on: control groups of both versions, network
// namespaces, capabilities, and processes that an earlier run of muster started.
package host
