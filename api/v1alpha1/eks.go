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

// Tags are those of a resource of AWS's: keys of up to 128 characters with values of up to 256.
//
// +kubebuilder:validation:MaxProperties=50
// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) > 0 && size(key) <= 128 && !key.lowerAscii().startsWith('aws:'))",message="a key has from 1 to 128 characters and does not begin with aws:"
type Tags map[string]TagValue

// TagValue is the value of a tag.
//
// +kubebuilder:validation:MaxLength=256
type TagValue string

// ClusterEKS is a record: EKS's API keeps it and reads it back, and nothing in Muster depends on it.
type ClusterEKS struct {
	// RoleARN is the role that the cluster was made with. Muster's control planes call no API of AWS's and assume no role; the role is checked
	// when EKS's API makes the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RoleARN string `json:"roleARN,omitempty"`

	// LoggingTypes are the logs of the control plane that are enabled. Muster keeps all of them on the host's disk in any case, and
	// sends none to CloudWatch.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	LoggingTypes []LoggingType `json:"loggingTypes,omitempty"`

	// Endpoint says which endpoints were asked for. The cluster has both: one on the host's loopback address and one in its VPC.
	//
	// +optional
	Endpoint ClusterEKSEndpoint `json:"endpoint,omitzero"`

	// SupportType is the support that was asked for once the version is old. Empty means EXTENDED.
	//
	// +optional
	// +kubebuilder:validation:Enum=STANDARD;EXTENDED
	SupportType string `json:"supportType,omitempty"`

	// EncryptionKeyARN is the KMS key that was given for Secrets. Muster encrypts them at rest with a key of its own in any case.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	EncryptionKeyARN string `json:"encryptionKeyARN,omitempty"`
}

// LoggingType is a log of the control plane, as EKS calls it.
//
// +kubebuilder:validation:Enum=api;audit;authenticator;controllerManager;scheduler
type LoggingType string

// LoggingTypes lists the types, in EKS's order.
func LoggingTypes() []LoggingType {
	return []LoggingType{"api", "audit", "authenticator", "controllerManager", "scheduler"}
}

// ClusterEKSEndpoint are EKS's two switches. Left out, the public one counts as true and the private one as false, as on EKS.
type ClusterEKSEndpoint struct {
	// +optional
	PublicAccess *bool `json:"publicAccess,omitempty"`
	// +optional
	PrivateAccess *bool `json:"privateAccess,omitempty"`
}

// ClusterCertificateAuthority is the authority of a cluster's API server.
type ClusterCertificateAuthority struct {
	// Data is the certificate in PEM, in base64. There are two while the authority is being replaced.
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
