// SPDX-License-Identifier: Apache-2.0

package baseline_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
	"muster.dev/muster/internal/platform/release"
)

const ca = "-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----\n"

func config(vpc bool) component.Config {
	c := component.Config{
		Account: component.Account{State: "/var/lib/muster", BinDir: "/opt/muster/bin", VPC: vpc}, Network: clusternetworktest.Network(),
		Dir: "/var/lib/muster/clusters/blue", Places: portplan.Ports{Published: 20003}.Places(), Release: release.Default(),
	}
	c.Cluster.Name, c.Cluster.Spec.Name = "blue", "Blue"
	c.Cluster.Default()
	c.Cluster.Spec.Network.ClusterDomain = "blue.local"
	return c
}

// sets are all sets of objects, by the name of their golden file.
func sets(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	all := map[string][]*unstructured.Unstructured{}
	for name, vpc := range map[string]bool{"cluster-vpc": true, "cluster-simulated": false} {
		objects, err := baseline.Cluster(config(vpc), []byte(ca))
		if err != nil {
			t.Fatal(err)
		}
		volumes, err := baseline.Volumes(config(vpc), "fs-0123456789abcdef0")
		if err != nil {
			t.Fatal(err)
		}
		endpoints, err := baseline.KubernetesEndpoints(config(vpc))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = slices.Concat(objects, endpoints, volumes)
	}
	objects, err := baseline.Management()
	if err != nil {
		t.Fatal(err)
	}
	all["management"] = objects
	member := config(true)
	member.Issuer.ID = "0A1B"
	if all["membership"], err = baseline.Membership(member); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestGolden(t *testing.T) {
	for name, objects := range sets(t) {
		manifesttest.Golden(t, filepath.Join("testdata", name+".yaml"), objects)
	}
}

func TestEveryObjectIsWhole(t *testing.T) {
	for set, objects := range sets(t) {
		t.Run(set, func(t *testing.T) {
			var others []string
			if set == "membership" { // which goes where the management plane's are
				others = append(others, get[*rbacv1.ClusterRole](t, "management", "muster:inventory").Name)
			}
			manifesttest.Whole(t, objects, others...)
		})
	}
}

func get[T runtime.Object](t *testing.T, set, name string) T {
	t.Helper()
	var zero T
	for _, object := range sets(t)[set] {
		if found, ok := manifesttest.Typed(t, object).(T); ok && object.GetName() == name {
			return found
		}
	}
	t.Fatalf("%s has no %T %s", set, zero, name)
	return zero
}

// The driver is registered as EFS's own manifest has it (aws-efs-csi-driver, deploy/kubernetes/base/csidriver.yaml):
// without fsGroupPolicy, so that the kubelet does not rewrite modes that programs gave their files.
func TestVolumeDriverIsRegisteredAsEFS(t *testing.T) {
	driver := get[*storagev1.CSIDriver](t, "cluster-vpc", "efs.csi.aws.com")
	if driver.Spec.FSGroupPolicy != nil {
		t.Errorf("fsGroupPolicy %s: must be left out", *driver.Spec.FSGroupPolicy)
	}
	if driver.Spec.AttachRequired == nil || *driver.Spec.AttachRequired {
		t.Error("volumes are to be attached")
	}
}

// The role and binding are those that `kubectl get clusterrole,clusterrolebinding eks:node-bootstrapper -o yaml` shows
// on EKS.
func TestNodeBootstrapperIsThatOfEKS(t *testing.T) {
	role := get[*rbacv1.ClusterRole](t, "cluster-vpc", "eks:node-bootstrapper")
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/selfnodeserver"}, Verbs: []string{"create"}}}
	if diff := cmp.Diff(rules, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	binding := get[*rbacv1.ClusterRoleBinding](t, "cluster-vpc", "eks:node-bootstrapper")
	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "eks:node-bootstrapper"}); binding.RoleRef != want {
		t.Errorf("role is %+v", binding.RoleRef)
	}
	subjects := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:bootstrappers"},
		{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"},
	}
	if diff := cmp.Diff(subjects, binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	for what, labels := range map[string]map[string]string{"role": role.Labels, "binding": binding.Labels} {
		if labels["eks.amazonaws.com/component"] != "node" {
			t.Errorf("labels of the %s are %v", what, labels)
		}
	}
}

// Who is bound to which role: all of it, so that nobody gets another without this test's reader seeing it.
func TestBindings(t *testing.T) {
	const request = "system:certificates.k8s.io:certificatesigningrequests:"
	for set, want := range map[string][]string{
		"cluster-simulated": {
			"Group muster:administrators: cluster-admin",
			"Group muster:kubelet-clients: system:kubelet-api-admin",
			"Group system:bootstrappers: " + request + "nodeclient",
			"Group system:bootstrappers: eks:node-bootstrapper",
			"Group system:bootstrappers: system:node-bootstrapper",
			"Group system:bootstrappers:kubeadm:default-node-token: " + request + "nodeclient",
			"Group system:bootstrappers:kubeadm:default-node-token: kubeadm:get-nodes",
			"Group system:bootstrappers:kubeadm:default-node-token: kubeadm:kubelet-config in kube-system",
			"Group system:bootstrappers:kubeadm:default-node-token: kubeadm:nodes-kubeadm-config in kube-system",
			"Group system:bootstrappers:kubeadm:default-node-token: system:node-bootstrapper",
			"Group system:nodes: " + request + "selfnodeclient",
			"Group system:nodes: " + request + "selfnodeclient",
			"Group system:nodes: eks:node-bootstrapper",
			"Group system:nodes: kubeadm:kubelet-config in kube-system",
			"Group system:nodes: kubeadm:nodes-kubeadm-config in kube-system",
			"Group system:nodes: muster:kubelet-authorities in kube-system",
			"Group system:nodes: system:node-proxier",
			"User eks:certificate-controller: eks:certificate-controller",
			"User eks:certificate-controller: eks:certificate-controller in muster-system",
			"User muster:simulator: muster:simulator",
			"User system:anonymous: kubeadm:bootstrap-signer-clusterinfo in kube-public",
		},
		"management": {
			"Group muster:administrators: cluster-admin",
		},
		"membership": {
			"User muster:inventory:0A1B: muster:inventory",
		},
	} {
		t.Run(set, func(t *testing.T) { manifesttest.Bindings(t, sets(t)[set], want...) })
	}
}

func TestNoWildcards(t *testing.T) {
	for set, objects := range sets(t) {
		t.Run(set, func(t *testing.T) {
			manifesttest.Narrow(t, objects)
		})
	}
}

// The certificate controller may do to exactly its signers what its policy file says, write ConfigMaps in its own
// namespace only, and change nothing about machines.
func TestCertificateController(t *testing.T) {
	kubelets := []string{"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"}
	want := map[string][]string{
		"approve": kubelets,
		"sign":    append(slices.Clone(kubelets), "kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown", component.SignerAppServing),
	}
	got := map[string][]string{}
	for _, rule := range get[*rbacv1.ClusterRole](t, "cluster-vpc", "eks:certificate-controller").Rules {
		if slices.Contains(rule.Resources, "configmaps") {
			t.Errorf("it may touch every ConfigMap: %+v", rule)
		}
		for _, verb := range rule.Verbs {
			if slices.Contains(rule.Resources, "signers") {
				got[verb] = rule.ResourceNames
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("signers (-want +got):\n%s", diff)
	}
	if role := get[*rbacv1.Role](t, "cluster-vpc", "eks:certificate-controller"); role.Namespace != "muster-system" {
		t.Errorf("its Role is in %s", role.Namespace)
	}
	for _, rule := range get[*rbacv1.ClusterRole](t, "management", "muster:inventory").Rules {
		if diff := cmp.Diff([]string{"get", "list", "watch"}, rule.Verbs); diff != "" {
			t.Errorf("verbs (-want +got):\n%s", diff)
		}
	}
}

func TestClusterInfo(t *testing.T) {
	for set, server := range map[string]string{"cluster-vpc": "https://172.31.0.4:443", "cluster-simulated": "https://127.0.0.1:20003"} {
		found := false
		for _, object := range sets(t)[set] {
			if object.GetKind() != "ConfigMap" || object.GetName() != "cluster-info" || object.GetNamespace() != "kube-public" {
				continue
			}
			found = true
			text, _, err := unstructured.NestedString(object.Object, "data", "kubeconfig")
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.Load([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := config.Clusters[""]; got == nil || got.Server != server || string(got.CertificateAuthorityData) != ca || len(config.AuthInfos) > 0 {
				t.Errorf("%s: %+v", set, config)
			}
		}
		if !found {
			t.Errorf("%s has no cluster-info", set)
		}
	}
}

func TestBadNetworks(t *testing.T) {
	for name, change := range map[string]func(*component.Config){
		"no DNS address": func(c *component.Config) { c.Cluster.Spec.Network.ServiceCIDR = "10.0.0.0/29" },
		"no endpoint":    func(c *component.Config) { c.Network.Addresses = nil },
	} {
		c := config(true)
		change(&c)
		if _, err := baseline.Cluster(c, []byte(ca)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
