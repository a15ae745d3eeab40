// SPDX-License-Identifier: Apache-2.0

package authcheck

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/iam/identity"
)

// The ConfigMap that is read.
const (
	AWSAuthNamespace = "kube-system"
	AWSAuthName      = "aws-auth"
)

// Entries are entries of a cluster or of files, and what is wrong with their form.
type Entries struct {
	// Notes say what was left out or supposed, in sentences.
	Notes []string

	accessEntries []identity.AccessEntry
	mappings      []identity.Mapping
	problems      []identity.Problem
	// serviceAccounts is how many service accounts have a role.
	serviceAccounts int
	// principalIDs means that the cluster's authenticator uses no access entry without its principal's id.
	principalIDs bool
}

// Cluster holds the entries of a cluster, by source. A nil source is not served by the cluster, or does not exist.
type Cluster struct {
	AccessEntries *accessv1alpha1.AccessEntryList
	Mappings      *iamauthenticatorv1alpha1.IAMIdentityMappingList
	AWSAuth       *corev1.ConfigMap
}

// OfCluster returns the entries of a cluster.
func OfCluster(c Cluster) *Entries {
	e := &Entries{}
	if c.AccessEntries == nil {
		e.note("The cluster has no kind AccessEntry.")
	} else {
		for i := range c.AccessEntries.Items {
			if !e.leaving(&c.AccessEntries.Items[i], "AccessEntry") {
				e.accessEntry(&c.AccessEntries.Items[i])
			}
		}
	}
	if c.Mappings != nil {
		for i := range c.Mappings.Items {
			if !e.leaving(&c.Mappings.Items[i], "IAMIdentityMapping") {
				e.mappings = append(e.mappings, identity.FromIAMIdentityMapping(&c.Mappings.Items[i]))
			}
		}
	}
	if c.AWSAuth == nil {
		e.note("The cluster has no ConfigMap " + AWSAuthNamespace + "/" + AWSAuthName + ".")
	} else if !e.leaving(c.AWSAuth, "ConfigMap") {
		e.awsAuth(c.AWSAuth)
	}
	return e
}

func (e *Entries) note(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// leaving reports whether an object is being deleted: authenticators take no notice of it any more, however long
// finalizers keep it.
func (e *Entries) leaving(object metav1.Object, kind string) bool {
	if object.GetDeletionTimestamp() == nil {
		return false
	}
	e.note("%s %s is being deleted, and maps nobody.", kind, object.GetName())
	return true
}

func (e *Entries) accessEntry(object *accessv1alpha1.AccessEntry) {
	e.accessEntries = append(e.accessEntries, identity.FromAccessEntry(object))
	switch known := meta.FindStatusCondition(object.Status.Conditions, accessv1alpha1.ConditionPrincipalKnown); {
	case object.Spec.PrincipalID != "" || object.CreationTimestamp.IsZero(): // of a file, which is not made yet
	case known != nil && known.Status == metav1.ConditionFalse:
		e.principalIDs = true
		e.note("AccessEntry %s: %s.", object.Name, known.Message)
	default:
		e.note("AccessEntry %s has no spec.principalID: any principal with the ARN %s is let in, also one that was deleted and made again.", object.Name, object.Spec.PrincipalARN)
	}
	for _, problem := range accesspolicy.NewPlan(object, nil).Problems {
		e.problems = append(e.problems, identity.Problem{
			Source: identity.SourceAccessEntry, Entry: object.Name, Field: "spec.accessPolicies", Saw: "has one that is not applied: " + problem, Fix: "remove it, or choose another",
		})
	}
}

func (e *Entries) awsAuth(object *corev1.ConfigMap) {
	mappings, problems := identity.ParseAWSAuth(object.Data)
	e.mappings, e.problems = append(e.mappings, mappings...), append(e.problems, problems...)
}
