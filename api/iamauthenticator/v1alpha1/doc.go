// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kind IAMIdentityMapping of aws-iam-authenticator, with that program's group and names of fields, so
// that objects written for it mean the same here. The definition validates its fields more strictly.
//
// +kubebuilder:object:generate=true
// +groupName=iamauthenticator.k8s.aws
package v1alpha1
