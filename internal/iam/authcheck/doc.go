// SPDX-License-Identifier: Apache-2.0

// Package authcheck checks the entries that let IAM principals into a cluster, and explains what a principal would
// become. Entries are those of a cluster or of files: access entries, IAMIdentityMapping objects, the ConfigMap
// kube-system/aws-auth and mounted files of mappings.
//
// It judges the entries that the caller passes and reads no cluster or file by itself. An entry that cannot be read is
// a problem, and so is a field that nobody knows.
package authcheck
