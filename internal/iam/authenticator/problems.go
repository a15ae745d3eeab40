// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/identity"
)

// Reasons of Events about entries.
const (
	reasonNotUsed = "MappingNotUsed"
	reasonProblem = "MappingProblem"
)

// report tells of what is wrong, once for as long as it is.
func (s *Sources) report(problems []identity.Problem) {
	now := make(map[string]identity.Problem, len(problems))
	for _, p := range problems {
		key := p.String()
		now[key] = p
		if _, told := s.reported[key]; told {
			continue
		}
		s.config.Logger.Warn("entry of a mapping is wrong", "source", p.Source, "entry", p.Entry, "field", p.Field, "saw", p.Saw, "fix", p.Fix, "unused", p.Unused)
		s.tell(p)
	}
	for key, p := range s.reported {
		if _, still := now[key]; !still {
			s.config.Logger.Info("entry of a mapping is not wrong any more", "source", p.Source, "entry", p.Entry, "field", p.Field)
		}
	}
	s.reported = now
}

// tell makes an Event on the object that an entry is in.
func (s *Sources) tell(p identity.Problem) {
	object := s.objectOf(p)
	if object == nil || s.config.Events == nil {
		return
	}
	reason := reasonProblem
	if p.Unused {
		reason = reasonNotUsed
	}
	s.config.Events.Event(object, corev1.EventTypeWarning, reason, p.String())
}

// objectOf finds the object that an entry is in; nil if it is in none, or is gone.
func (s *Sources) objectOf(p identity.Problem) *corev1.ObjectReference {
	var found metav1.Object
	var kind schema.GroupVersionKind
	switch p.Source {
	case identity.SourceAccessEntry:
		kind = accessv1alpha1.GroupVersion.WithKind("AccessEntry")
		found = named(objectsOf[*accessv1alpha1.AccessEntry](s.entries), p.Entry)
	case identity.SourceIdentityMapping:
		kind = iamv1alpha1.GroupVersion.WithKind("IAMIdentityMapping")
		found = named(objectsOf[*iamv1alpha1.IAMIdentityMapping](s.mappings), p.Entry)
	case identity.SourceAWSAuth:
		kind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
		found = named(objectsOf[*corev1.ConfigMap](s.awsAuth), awsAuthName)
	case identity.SourceFile:
	}
	if found == nil {
		return nil
	}
	version, kindName := kind.ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: version, Kind: kindName, Namespace: found.GetNamespace(), Name: found.GetName(), UID: found.GetUID(), ResourceVersion: found.GetResourceVersion(),
	}
}

func named[T metav1.Object](all []T, name string) metav1.Object {
	for _, o := range all {
		if o.GetName() == name {
			return o
		}
	}
	return nil
}
