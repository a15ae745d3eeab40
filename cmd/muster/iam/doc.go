// SPDX-License-Identifier: Apache-2.0

// Package iam has the commands that set up AWS tools and kubectl: iam env, kubeconfig.
package iam
