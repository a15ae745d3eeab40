// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// An update of an earlier cluster, node group or add-on of the same name is neither described nor cancelled.
func TestUpdatesOfEarlierObjectsAreNotCancelled(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 200)
	w.ask("POST", "/clusters/Blue_1/addons", `{"addonName":"metrics-server"}`, 200)
	slug := v1alpha1.ClusterSlug("Blue_1")
	cluster, group := &v1alpha1.Cluster{}, &v1alpha1.NodeGroup{}
	for object, name := range map[client.Object]string{cluster: slug, group: v1alpha1.NodeGroupSlug("Web_1")} {
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	var addons v1alpha1.AddonList
	if err := w.api.List(t.Context(), &addons, client.InNamespace(slug)); err != nil || len(addons.Items) != 1 {
		t.Fatalf("%d add-ons, %v", len(addons.Items), err)
	}
	addon := addons.Items[0]
	for n, c := range []struct {
		group, addon string
		uid          string // that the update has
		status       int
		says         string
	}{
		{"", "", string(cluster.UID), 200, `"status":"InProgress"`},
		{"", "", "", 200, `"status":"InProgress"`}, // of a release that kept no UID
		{"", "", "earlier", 404, "No update found for ID: "},
		{"Web_1", "", string(group.UID), 200, `"status":"InProgress"`},
		{"Web_1", "", "earlier", 404, "No update found for ID: "},
		{"Web_1", "", string(cluster.UID), 404, "No update found for ID: "},
		{"gone", "", string(group.UID), 404, "No node group found for name: gone."},
		{"", addon.Name, string(addon.UID), 200, `"status":"InProgress"`},
		{"", addon.Name, "earlier", 404, "No update found for ID: "},
		{"", "gone", string(addon.UID), 404, "gone"},
	} {
		id := "00000000-0000-4000-8000-00000000000" + string(rune('0'+n))
		u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: slug, Name: id}, Spec: v1alpha1.UpdateSpec{
			ClusterName: "Blue_1", NodeGroup: c.group, Addon: c.addon, TargetUID: c.uid, Type: v1alpha1.UpdateVersion,
		}}
		if err := w.api.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		path := "/clusters/Blue_1/updates/" + id
		w.ask("GET", path+"?nodegroupName="+c.group+"&addonName="+c.addon, "", c.status, c.says)
		w.ask("POST", path+"/cancel-update", `{}`, c.status, c.says)
		if cancelled := w.storedUpdate(id).Annotations[v1alpha1.AnnotationCancel] == "true"; cancelled != (c.status == 200) {
			t.Errorf("%+v: cancelled is %v", c, cancelled)
		}
	}
}
