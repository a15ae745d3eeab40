// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// managementPlane answers what a client asks for to list machines.
func managementPlane(t *testing.T, machines v1alpha1.MachineList) *httptest.Server {
	t.Helper()
	version := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(), Version: "v1alpha1"}
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: "muster.dev", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	machines.TypeMeta = metav1.TypeMeta{Kind: "MachineList", APIVersion: version.GroupVersion}
	answers := map[string]any{
		"/api":             metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}},
		"/apis":            metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}},
		"/apis/muster.dev": group,
		"/apis/muster.dev/v1alpha1": metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.GroupVersion,
			APIResources: []metav1.APIResource{{Name: "machines", SingularName: "machine", Kind: "Machine", Verbs: metav1.Verbs{"list"}}},
		},
		"/apis/muster.dev/v1alpha1/machines": machines,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			_, _ = io.WriteString(w, err.Error())
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestJoins(t *testing.T) {
	var machines v1alpha1.MachineList
	joined := func(name, cluster, node string, steps ...v1alpha1.JoinStep) {
		m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{ClusterName: cluster, NodeGroup: "workers"}, Status: v1alpha1.MachineStatus{NodeName: node}}
		for i, step := range steps {
			m.Status.Join = append(m.Status.Join, v1alpha1.JoinRecord{Step: step, Time: metav1.NewMicroTime(time.Unix(1000, 0).Add(time.Duration(i) * 100 * time.Millisecond))})
		}
		machines.Items = append(machines.Items, m)
	}
	joined("i-5", "another", "ip-c")
	joined("i-3", "Blue", "ip-b", v1alpha1.StepLaunched, v1alpha1.StepAPIReached)
	joined("i-4", "Blue", "ip-a", v1alpha1.StepLaunched, v1alpha1.StepAPIReached, v1alpha1.StepReady)
	server := managementPlane(t, machines)
	dir := statedir.Dir(t.TempDir())
	wanted := clusterconfig.Default(1, v1alpha1.ProviderSimulated)
	wanted.Cluster.Spec.Name = "Blue"
	s := Session{State: dir, Wanted: wanted}
	if _, err := s.Joins(t.Context()); err == nil {
		t.Error("without a kubeconfig: no error")
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "x"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, dir.ManagementKubeconfig()); err != nil {
		t.Fatal(err)
	}
	got, err := s.Joins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []joinlog.Way{
		{Machine: "i-4", Node: "ip-a", Steps: map[v1alpha1.JoinStep]time.Duration{v1alpha1.StepLaunched: 0, v1alpha1.StepAPIReached: 100 * time.Millisecond, v1alpha1.StepReady: 200 * time.Millisecond}},
		{Machine: "i-3", Node: "ip-b", Steps: map[v1alpha1.JoinStep]time.Duration{v1alpha1.StepLaunched: 0, v1alpha1.StepAPIReached: 100 * time.Millisecond}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
