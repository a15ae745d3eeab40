// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The API server adds one of these finalizers to an object that is deleted with propagation policy Foreground or Orphan
// (kubectl delete --cascade), and expects the garbage collector of kube-controller-manager to remove it
// (pkg/controller/garbagecollector). The management plane runs no garbage collector, so the controller of a kind
// removes them. It has nothing else to do for them: the machines of a group go before the group under every policy, and
// no machine outlives its group, Orphan or not.
var cascadeFinalizers = []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents}

// held reports whether the controller of an object has a finalizer to remove before the object can go: its own, or the
// garbage collector's.
func held(object client.Object, own string) bool {
	return slices.ContainsFunc(object.GetFinalizers(), func(name string) bool { return name == own || slices.Contains(cascadeFinalizers, name) })
}

// letGo removes the finalizers that [held] reports. Finalizers of others stay.
func letGo(object client.Object, own string) {
	for _, name := range append([]string{own}, cascadeFinalizers...) {
		controllerutil.RemoveFinalizer(object, name)
	}
}
