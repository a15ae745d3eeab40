// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/statedir"
)

const first, second, other = "i-00000000000000001", "i-00000000000000002", "i-00000000000000003"

// A machine of one VPC is never taken for that of another with the same address.
func TestMachinesOfOneAddress(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	var objects []client.Object
	for _, m := range []struct{ id, cluster, address string }{{first, "blue", "172.31.0.5"}, {second, "Green", "172.31.0.5"}, {other, "blue", "172.31.16.5"}} {
		path := filepath.Join(dir.Machine(m.id), "instance.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		record := fmt.Sprintf(`{"id":%q,"cluster":%q,"privateIP":%q,"privateDNSName":"ip-%s.ec2.internal","zone":"us-east-1a"}`, m.id, m.cluster, m.address, strings.ReplaceAll(m.address, ".", "-"))
		if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: m.id},
			Status:     v1alpha1.MachineStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: m.address}}},
		})
	}
	for _, test := range []struct{ name, cluster, want string }{
		{"172.31.16.5", "", other},
		{"172.31.0.5", "blue", first},
		{"ip-172-31-0-5.ec2.internal", "Green", second},
		{second, "blue", second},
		{"172.31.0.5", "", ""},
		{"ip-172-31-0-5.ec2.internal", "", ""},
	} {
		id, err := MachineID(t.Context(), &terminal.Options{Cluster: test.cluster}, Dialers{}, dir, test.name)
		if id != test.want || (err == nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), "give one of "+first+", "+second+", or choose a cluster with --cluster") {
			t.Errorf("%s of cluster %q is %q, %v", test.name, test.cluster, id, err)
		}
	}
	if found, err := Machines().Choose(objects, []string{"172.31.0.5"}); err == nil || len(found) != 0 || !strings.Contains(err.Error(), `several machines go by "172.31.0.5"`) {
		t.Errorf("chosen: %v, %v", found, err)
	}
	if found, err := Machines().Choose(objects, []string{"172.31.16.5"}); err != nil || len(found) != 1 {
		t.Errorf("chosen: %v, %v", found, err)
	}
}

// A machine of no cluster is of none, and not of one with a made-up name.
func TestClusterOfAMachine(t *testing.T) {
	for cluster, want := range map[string]string{"": "", "blue": "blue"} {
		if got := clusterOf(&v1alpha1.Machine{Spec: v1alpha1.MachineSpec{ClusterName: cluster}}); got != want {
			t.Errorf("a machine of cluster %q is of %q, want %q", cluster, got, want)
		}
	}
}
