// SPDX-License-Identifier: Apache-2.0

package authcheck

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/strictyaml"
)

// AddManifest adds the objects of a manifest: documents of YAML or JSON, each an object or a List.
func (e *Entries) AddManifest(name string, data []byte) error {
	documents, err := strictyaml.Documents(data)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	for i, document := range documents {
		if err := e.document(document); err != nil {
			return fmt.Errorf("%s, document %d: %w", name, i+1, err)
		}
	}
	return nil
}

// AddMounted adds the mappings of a file that is mounted into the authenticator. An entry that cannot be read is a
// problem of e.
func (e *Entries) AddMounted(data []byte) {
	mappings, problems := identity.ParseFile(data)
	e.mappings, e.problems = append(e.mappings, mappings...), append(e.problems, problems...)
}

// document reads one object, or a list of them.
func (e *Entries) document(document []byte) error {
	data, problems := strictyaml.ToJSON(document)
	if len(problems) > 0 {
		return fmt.Errorf("is not YAML: %s", problems[0])
	}
	return e.object(data)
}

func (e *Entries) object(data []byte) error {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Items             []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("is not a Kubernetes object: %w", err)
	}
	switch head.GroupVersionKind().String() {
	case corev1.SchemeGroupVersion.WithKind("List").String():
		for i, item := range head.Items {
			if err := e.object(item); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		return nil
	case corev1.SchemeGroupVersion.WithKind("ConfigMap").String():
		if head.Name != AWSAuthName || head.Namespace != "" && head.Namespace != AWSAuthNamespace {
			e.note("The ConfigMap %s/%s is left out: only %s/%s is read.", head.Namespace, head.Name, AWSAuthNamespace, AWSAuthName)
			return nil
		}
		var object corev1.ConfigMap
		e.decode(data, &object, identity.SourceAWSAuth, head.Name, func() { e.awsAuth(&object) })
	case accessv1alpha1.GroupVersion.WithKind("AccessEntry").String():
		var object accessv1alpha1.AccessEntry
		e.decode(data, &object, identity.SourceAccessEntry, head.Name, func() { e.accessEntry(&object) })
	case iamauthenticatorv1alpha1.GroupVersion.WithKind("IAMIdentityMapping").String():
		var object iamauthenticatorv1alpha1.IAMIdentityMapping
		e.decode(data, &object, identity.SourceIdentityMapping, head.Name, func() { e.mappings = append(e.mappings, identity.FromIAMIdentityMapping(&object)) })
	default:
		return fmt.Errorf("is a %q of %q; there are the ConfigMap aws-auth of v1, AccessEntry of %s and IAMIdentityMapping of %s (a mounted file is named by --file)",
			head.Kind, head.APIVersion, accessv1alpha1.GroupVersion, iamauthenticatorv1alpha1.GroupVersion)
	}
	return nil
}

// decode reads an object and calls use. Unknown fields become problems; an object that cannot be read becomes a problem
// and is left out.
func (e *Entries) decode(data []byte, object any, source identity.Source, name string, use func()) {
	problems, ok := strictyaml.FromJSON(data, object)
	for _, problem := range problems {
		e.problems = append(e.problems, identity.Problem{Source: source, Entry: name, Saw: "cannot be read as it is: " + problem, Fix: "correct it", Unused: !ok})
	}
	if ok {
		use()
	}
}
