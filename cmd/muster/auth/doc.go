// SPDX-License-Identifier: Apache-2.0

// Package auth has the commands about identities: auth check, which checks entries and shows what an IAM principal
// becomes in a cluster, and auth pod, which shows the IAM identity of a pod.
package auth
