// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/api/v1alpha1"
)

// Mapper knows the resources of the management plane that the service uses. It asks nobody: discovery would
// cost a request for each group at every start, and does not know muster's kinds in the first seconds of a new cluster.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for version, kinds := range map[schema.GroupVersion][]string{
		apiextensionsv1.SchemeGroupVersion: {"CustomResourceDefinition"},
		admissionregistrationv1.SchemeGroupVersion: {
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		},
		rbacv1.SchemeGroupVersion: {"ClusterRole", "ClusterRoleBinding"},
	} {
		for _, kind := range kinds {
			mapper.Add(version.WithKind(kind), meta.RESTScopeRoot)
		}
	}
	v1alpha1.AddToMapper(mapper)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(eventsv1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	return mapper
}
