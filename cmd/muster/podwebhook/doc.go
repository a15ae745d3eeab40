// SPDX-License-Identifier: Apache-2.0

// Package podwebhook has the command that runs the pod identity webhook: pod-identity-webhook.
package podwebhook
