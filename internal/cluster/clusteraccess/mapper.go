// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
)

// Mapper knows the resources of a cluster that [Access] reads and writes, and the nodes that insights are about.
// Discovery is a second behind a kind that was only just defined.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(accessv1alpha1.GroupVersion.WithKind("AccessEntry"), meta.RESTScopeRoot)
	mapper.Add(iamv1alpha1.GroupVersion.WithKind("IAMIdentityMapping"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	return mapper
}
