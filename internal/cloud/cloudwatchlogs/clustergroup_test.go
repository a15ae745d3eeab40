// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

// A cluster has its log group once a log type is switched on, and an existing one stays as it is.
func TestLogGroupOfACluster(t *testing.T) {
	w := newWorld(t)
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue"}}
	if err := w.api.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	reconciles := func() {
		t.Helper()
		if _, err := (&clusterGroups{w.api, w.api}).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}); err != nil {
			t.Fatal(err)
		}
	}
	reconciles()
	w.ask("DescribeLogGroups", `{}`, 200, `{"logGroups":[]}`)

	cluster.Spec.EKS.LoggingTypes = []v1alpha1.LoggingType{"audit"}
	if err := w.api.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	reconciles()
	w.ask("DescribeLogGroups", `{}`, 200, `"logGroupName":"/aws/eks/blue/cluster"`, `"logGroupClass":"STANDARD"`)
	w.ask("PutRetentionPolicy", named(`"retentionInDays":90`), 200)
	w.ask("CreateLogGroup", named(), 400, alreadyExists)
	w.now = w.now.Add(time.Hour)
	reconciles()
	w.ask("DescribeLogGroups", `{}`, 200, `"retentionInDays":90`, `"creationTime":1800000000000`)

	if err := w.api.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	reconciles()
	w.ask("DescribeLogGroups", `{}`, 200, `"logGroupName":"/aws/eks/blue/cluster"`)
}
