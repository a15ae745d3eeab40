// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// Tags are the tags of a resource in the AWS API: keys of up to 128 characters with values of up to 256.
//
// +kubebuilder:validation:MaxProperties=50
// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) > 0 && size(key) <= 128 && !key.lowerAscii().startsWith('aws:'))",message="a key has from 1 to 128 characters and does not begin with aws:"
type Tags map[string]TagValue

// TagValue is the value of a tag.
//
// +kubebuilder:validation:MaxLength=256
type TagValue string

// ClusterEKS holds settings that the EKS API stores and returns. Besides LoggingTypes they have no effect in Muster.
type ClusterEKS struct {
	// RoleARN is the role that the cluster was created with. The EKS API checks the role when it creates the cluster. Control planes do not
	// assume it, because they call no AWS API.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RoleARN string `json:"roleARN,omitempty"`

	// LoggingTypes are the enabled logs of the control plane: those that the account's log store keeps. All logs are files on the host in any
	// case, and none are sent to CloudWatch.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	LoggingTypes []LoggingType `json:"loggingTypes,omitempty"`

	// Endpoint holds the requested endpoint switches. A cluster always has both endpoints: one on the host's loopback address and one in its
	// VPC.
	//
	// +optional
	Endpoint ClusterEKSEndpoint `json:"endpoint,omitzero"`

	// SupportType is the requested support policy. Empty means EXTENDED.
	//
	// +optional
	// +kubebuilder:validation:Enum=STANDARD;EXTENDED
	SupportType string `json:"supportType,omitempty"`

	// EncryptionKeyARN is the requested KMS key for Secrets. They are always encrypted at rest with a key of Muster's own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	EncryptionKeyARN string `json:"encryptionKeyARN,omitempty"`
}

// LoggingType is a log of the control plane, by EKS's name.
//
// +kubebuilder:validation:Enum=api;audit;authenticator;controllerManager;scheduler
type LoggingType string

// LoggingTypes lists the types, in EKS's order.
func LoggingTypes() []LoggingType {
	return []LoggingType{"api", "audit", "authenticator", "controllerManager", "scheduler"}
}

// ClusterEKSEndpoint holds EKS's endpoint switches. If omitted, publicAccess is true and privateAccess is false, as on EKS.
type ClusterEKSEndpoint struct {
	// +optional
	PublicAccess *bool `json:"publicAccess,omitempty"`
	// +optional
	PrivateAccess *bool `json:"privateAccess,omitempty"`
}

// ClusterCertificateAuthority is the certificate authority of a cluster's API server.
type ClusterCertificateAuthority struct {
	// Data is the certificate: PEM in base64. It holds two certificates during a rotation.
	// +optional
	Data string `json:"data,omitempty"`
}

func validateTags(path *field.Path, tags Tags) field.ErrorList {
	var errs field.ErrorList
	if len(tags) > maxTags {
		errs = append(errs, field.TooMany(path, len(tags), maxTags))
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if n := utf8.RuneCountInString(key); n == 0 || n > maxTagKey || strings.HasPrefix(strings.ToLower(key), "aws:") {
			errs = append(errs, field.Invalid(path, key, fmt.Sprintf("a key has from 1 to %d characters and does not begin with aws:", maxTagKey)))
		}
		if utf8.RuneCountInString(string(tags[key])) > maxTagValue {
			errs = append(errs, field.TooLong(path.Key(key), "", maxTagValue))
		}
	}
	return errs
}

func validateEKS(path *field.Path, eks ClusterEKS) field.ErrorList {
	var errs field.ErrorList
	if utf8.RuneCountInString(eks.RoleARN) > maxRoleARN {
		errs = append(errs, field.TooLong(path.Child("roleARN"), "", maxRoleARN))
	}
	if utf8.RuneCountInString(eks.EncryptionKeyARN) > maxRoleARN {
		errs = append(errs, field.TooLong(path.Child("encryptionKeyARN"), "", maxRoleARN))
	}
	for i, kind := range eks.LoggingTypes {
		if !slices.Contains(LoggingTypes(), kind) {
			errs = append(errs, field.NotSupported(path.Child("loggingTypes").Index(i), kind, LoggingTypes()))
		}
		if slices.Contains(eks.LoggingTypes[:i], kind) {
			errs = append(errs, field.Duplicate(path.Child("loggingTypes").Index(i), kind))
		}
	}
	if types := []string{"STANDARD", "EXTENDED"}; eks.SupportType != "" && !slices.Contains(types, eks.SupportType) {
		errs = append(errs, field.NotSupported(path.Child("supportType"), eks.SupportType, types))
	}
	return errs
}
