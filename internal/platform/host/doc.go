// SPDX-License-Identifier: Apache-2.0

// Package host is what muster needs of the Linux machine it runs on: control groups of either version, network
// namespaces, capabilities, and the processes that it started in an earlier life.
package host
