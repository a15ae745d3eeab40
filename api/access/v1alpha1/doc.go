// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the kind AccessEntry of the group access.muster.dev, which maps an IAM principal to a user, groups and access policies
// of a cluster. It lives in the cluster that it is about, and means what an access entry of EKS means.
//
// +kubebuilder:object:generate=true
// +groupName=access.muster.dev
package v1alpha1
