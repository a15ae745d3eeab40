// SPDX-License-Identifier: Apache-2.0

// Package plane reaches the API servers of a state directory or a kubeconfig, and knows the kinds that commands print.
package plane
