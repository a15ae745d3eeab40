// SPDX-License-Identifier: Apache-2.0

package podnotice

import corev1 "k8s.io/api/core/v1"

// notice is what there is to be said about a pod.
type notice struct {
	about   string // which of the pod's things; each is said once
	reason  string
	message string
}

// decide reads an Event. It returns nil if nothing is to be said about it.
func decide(event *corev1.Event) *notice {
	if event.InvolvedObject.Kind != "Pod" {
		return nil
	}
	for _, rule := range []func(*corev1.Event) *notice{notLoaded, noUserNamespace} {
		if said := rule(event); said != nil {
			return said
		}
	}
	return nil
}
