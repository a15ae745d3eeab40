// SPDX-License-Identifier: Apache-2.0

// Package tools has the commands that set up AWS's tools and kubectl: env, kubeconfig.
package tools
