// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kind AccessEntry of the group access.muster.dev: who of IAM becomes whom in a cluster, and what they
// may do there. It lives in the cluster that it is about, and means what an access entry of EKS means.
//
// +kubebuilder:object:generate=true
// +groupName=access.muster.dev
package v1alpha1
