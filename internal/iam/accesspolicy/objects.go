// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	acrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/iam/identity"
)

const (
	// fieldOwner is the name under which the API server remembers which fields are this part's.
	fieldOwner = client.FieldOwner("muster-access-policies")

	// LabelManaged is on every binding of this part.
	LabelManaged = "access.muster.dev/managed-by"
	// AnnotationEntry names the owner. Names of entries may be longer than labels.
	AnnotationEntry = "access.muster.dev/access-entry"

	managed = "access-policies"
)

func labels() client.MatchingLabels { return client.MatchingLabels{LabelManaged: managed} }

// ours reports whether a binding is of this part and of that entry. A label alone is not enough: others can write one.
func ours(object client.Object, entry string) bool {
	return object.GetLabels()[LabelManaged] == managed && object.GetAnnotations()[AnnotationEntry] == entry && strings.HasPrefix(object.GetName(), identity.PolicyGroup(entry)+":")
}

func (b Binding) of(object client.Object) bool {
	return b.Namespace == object.GetNamespace() && b.Name == object.GetName()
}

// owner has the garbage collector remove a binding when its entry is gone, or another by its name, even while nobody
// reconciles: the group is called after the entry's name, so the next one of that name would have what the binding
// gives.
func owner(entry *accessv1alpha1.AccessEntry) *acmetav1.OwnerReferenceApplyConfiguration {
	return acmetav1.OwnerReference().WithAPIVersion(accessv1alpha1.GroupVersion.String()).WithKind("AccessEntry").WithName(entry.Name).WithUID(entry.UID)
}

// configuration is the binding as it is applied.
func (b Binding) configuration(entry *accessv1alpha1.AccessEntry) runtime.ApplyConfiguration {
	meta := map[string]string{LabelManaged: managed}
	notes := map[string]string{AnnotationEntry: entry.Name}
	role := acrbacv1.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(b.ClusterRole)
	subject := acrbacv1.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.GroupKind).WithName(identity.PolicyGroup(entry.Name))
	if b.Namespace == "" {
		return acrbacv1.ClusterRoleBinding(b.Name).WithLabels(meta).WithAnnotations(notes).WithOwnerReferences(owner(entry)).WithRoleRef(role).WithSubjects(subject)
	}
	return acrbacv1.RoleBinding(b.Name, b.Namespace).WithLabels(meta).WithAnnotations(notes).WithOwnerReferences(owner(entry)).WithRoleRef(role).WithSubjects(subject)
}

// state is the role and the subjects of an existing binding.
type state struct {
	object   client.Object
	role     rbacv1.RoleRef
	subjects []rbacv1.Subject
}

// good reports whether it says what the binding must. Subjects are one list that is replaced as a whole.
func (s state) good(b Binding, entry *accessv1alpha1.AccessEntry) bool {
	group := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: identity.PolicyGroup(entry.Name)}
	owned := slices.ContainsFunc(s.object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == entry.UID })
	return s.roleGood(b) && len(s.subjects) == 1 && s.subjects[0] == group && owned
}

// roleGood reports whether it can be corrected: to which role a binding binds never changes (RoleBinding API).
func (s state) roleGood(b Binding) bool {
	return s.role == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.ClusterRole}
}
