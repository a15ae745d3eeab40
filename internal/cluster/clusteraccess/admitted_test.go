// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fcache "k8s.io/client-go/tools/cache/testing"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
)

func TestAdmittedTellsOfMappings(t *testing.T) {
	t.Parallel()
	entries, configMaps := fcache.NewFakeControllerSource(), fcache.NewFakeControllerSource()
	a := &Admitted{changed: make(chan struct{}, 1), sources: []mappingSource{{entries, &accessv1alpha1.AccessEntry{}}, {configMaps, &corev1.ConfigMap{}}}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	entry := &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", Generation: 1}}
	entries.Add(entry.DeepCopy())
	<-a.changed
	entry.Generation = 2
	entries.Modify(entry.DeepCopy())
	<-a.changed
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "aws-auth", UID: "2"}}
	configMaps.Add(configMap.DeepCopy())
	<-a.changed
	configMap.Data = map[string]string{"mapRoles": ""}
	configMaps.Modify(configMap.DeepCopy())
	<-a.changed
	entries.Delete(entry.DeepCopy())
	<-a.changed
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSameGeneration(t *testing.T) {
	t.Parallel()
	entry := func(uid types.UID, generation int64) *accessv1alpha1.AccessEntry {
		return &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation}}
	}
	for name, test := range map[string]struct {
		before, after any
		want          bool
	}{
		"a status":          {entry("", 1), entry("", 1), true},
		"a spec":            {entry("", 1), entry("", 2), false},
		"made again":        {entry("", 1), entry("x", 1), false},
		"without a number":  {&corev1.ConfigMap{}, &corev1.ConfigMap{}, false},
		"what is no object": {1, 2, false},
	} {
		if got := sameGeneration(test.before, test.after); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
