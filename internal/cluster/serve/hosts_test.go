// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/plane/runner/runnertest"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

// newAccount is a service whose account has a default VPC, in a region.
func newAccount(t *testing.T) (*Service, component.Account) {
	t.Helper()
	s := newService(t)
	own, err := region.Find("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := networkrecord.DescribeDefault(s.cfg.State, own, egresspolicy.NAT); err != nil {
		t.Fatal(err)
	}
	return s, component.Account{State: s.cfg.State, VPC: true, Region: own}
}

// asked is a Cluster as the management plane has it, with defaults.
func asked(name string) *v1alpha1.Cluster {
	cluster := clusterconfig.Default(0, v1alpha1.ProviderSimulated).Cluster
	cluster.Spec.Name, cluster.Name, cluster.Namespace = name, v1alpha1.ClusterSlug(name), v1alpha1.ClusterSlug(name)
	return cluster
}

func newHosts(t *testing.T) clusterHosts {
	t.Helper()
	s, account := newAccount(t)
	identities := identityservicetest.NewMemory()
	if err := identities.Create(t.Context(), iam.Account{ID: identityservice.DefaultAccount}); err != nil {
		t.Fatal(err)
	}
	s.setIdentities(identities, nil)
	s.runner = runnertest.NewPlace().New(t.Context())
	return clusterHosts{Service: s, account: account, api: fakeClient(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "muster:inventory:blue"}})}
}

func TestHost(t *testing.T) {
	hosts, object := newHosts(t), asked("Blue")
	dir := hosts.cfg.State.Cluster(object.Namespace)
	for range 2 {
		if err := hosts.Host(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := clusterconfig.Read(dir.Record())
	if err != nil || saved.Cluster.Spec.Name != "Blue" || len(saved.NodeGroups) != 0 {
		t.Errorf("the record is %+v, %v", saved, err)
	}
	if len(hosts.look) != 1 {
		t.Error("nobody is told to look for it")
	}
	if served, message := hosts.State(object.Namespace); served || message != "" {
		t.Errorf("before it runs: %v, %q", served, message)
	}

	h := hosts.host(t.Context(), dir)
	h.say("starting the cluster: no ports are left")
	if served, message := hosts.State(object.Namespace); served || !strings.Contains(message, "no ports") {
		t.Errorf("while it starts: %v, %q", served, message)
	}
	h.setReader(fakeClient(t))
	if served, _ := hosts.State(object.Namespace); !served {
		t.Error("it is not served")
	}

	// What people change is changed in the record, also while it does not run; but for what cannot be changed.
	object.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationAPI
	if err := hosts.Host(t.Context(), object); err != nil || len(h.reload) != 1 {
		t.Errorf("%v, %d reloads", err, len(h.reload))
	}
	var refusal *clustercontroller.Refusal
	refused := func(what string) {
		t.Helper()
		h.setReader(fakeClient(t))
		if err := hosts.Host(t.Context(), object); err != nil || !strings.Contains(h.followed.refusal, what) {
			t.Errorf("while it is served its own controllers are to say %q: %v, %q", what, err, h.followed.refusal)
		}
		h.setReader(nil)
	}
	object.Spec.Version = "v1.99.0"
	refused(`unsupported Kubernetes version "v1.99.0": there is 1.34`)
	object.Spec.Version = ""
	refused("")
	if h.followed.refusal != "" {
		t.Errorf("still refused: %s", h.followed.refusal)
	}
	object.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationConfigMap
	refused("cannot go back")
	if err := hosts.Host(t.Context(), object); !errors.As(err, &refusal) || refusal.Reason != readiness.ReasonChangeRefused || !strings.Contains(refusal.Message, "cannot go back") {
		t.Errorf("got %v", err)
	}
	bad := asked("green")
	bad.Spec.Network.ServiceCIDR = "10.0.0.0/33"
	if err := hosts.Host(t.Context(), bad); !errors.As(err, &refusal) || refusal.Reason != readiness.ReasonInvalidSpec || !strings.Contains(refusal.Message, "serviceCIDR") {
		t.Errorf("got %v", err)
	}
	bad = asked("green")
	bad.Spec.Version = "v1.99.0"
	if err := hosts.Host(t.Context(), bad); !errors.As(err, &refusal) || refusal.Reason != readiness.ReasonUnsupportedVersion || !strings.Contains(refusal.Message, `unsupported Kubernetes version "v1.99.0": there is 1.34`) {
		t.Errorf("got %v", err)
	}
	if dirs, err := hosts.cfg.State.ListClusters(); err != nil || len(dirs) != 1 {
		t.Errorf("directories %v, %v", dirs, err)
	}
}

// An upgrade takes programs that are built, and machines that are not too old for it.
func TestUpgradeIsRefused(t *testing.T) {
	hosts := newHosts(t)
	hosts.cfg.BinDir = t.TempDir()
	newest := release.All()[len(release.All())-1]
	upgrade := hosts.move(t.Context(), asked("blue"))
	if err := upgrade(newest); err == nil || !strings.HasPrefix(err.Error(), "spec.version: Kubernetes "+newest.Minor()+" is not built here: run `make kubernetes MINOR=") {
		t.Errorf("it is not built: %v", err)
	}
	for _, path := range slices.Concat(releasetest.Next().PlanePrograms(), releasetest.Next().MachinePrograms(), newest.PlanePrograms(), newest.MachinePrograms()) {
		path = filepath.Join(hosts.cfg.BinDir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []string{"blue", "green"} {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-of-" + of}, Spec: v1alpha1.MachineSpec{ClusterName: of, ImageID: ami.OfRelease(release.All()[0])}}
		if err := hosts.api.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := upgrade(newest); err != nil {
		t.Errorf("%d minors newer than its machines: %v", newest.Distance(release.All()[0]), err)
	}
	if err := upgrade(releasetest.Next()); err == nil || !strings.Contains(err.Error(), "spec.version: machines keep the cluster from 1.99: machine i-of-blue: machines of 1.34 would be 65 minors older") {
		t.Errorf("its machines are too old: %v", err)
	}
	h := hosts.host(t.Context(), hosts.cfg.State.Cluster("blue"))
	if err := clustercontroller.Begin(h.dir, asked("blue")); err != nil {
		t.Fatal(err)
	}
	newer := asked("blue")
	newer.Spec.Version, h.followed.refusal = newest.Minor(), "as it was"
	away := func(release.Release) error { return unasked{errors.New("the management plane is away")} }
	if err := h.adopt(newer, away, anySettings); err == nil || h.followed.refusal != "as it was" || len(h.reload) != 0 {
		t.Errorf("the machines could not be asked for: %v, %q", err, h.followed.refusal)
	}
	if err := hosts.move(t.Context(), asked("red"))(releasetest.Next()); err != nil {
		t.Errorf("other clusters' machines are too old: %v", err)
	}
}

// A cluster that the host has no memory for is refused, beside those that are starting and have not taken theirs yet.
func TestHostWithoutMemory(t *testing.T) {
	hosts := newHosts(t)
	available := capacity.ControlPlaneMemory
	hosts.memory = func() (int64, error) { return available, nil }
	if err := hosts.Host(t.Context(), asked("blue")); err != nil {
		t.Fatal(err)
	}
	var refusal *clustercontroller.Refusal
	if err := hosts.Host(t.Context(), asked("green")); !errors.As(err, &refusal) || refusal.Reason != readiness.ReasonInsufficientMemory || !strings.Contains(refusal.Message, "the control plane of a cluster needs") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(string(hosts.cfg.State.Cluster("green"))); err == nil {
		t.Error("something was made of it")
	}
	hosts.host(t.Context(), hosts.cfg.State.Cluster("blue")).setReader(fakeClient(t)) // by now what it needs is in the figure
	if err := hosts.Host(t.Context(), asked("green")); err != nil {
		t.Error(err)
	}
	available = 0
	if err := hosts.Host(t.Context(), asked("green")); err != nil {
		t.Errorf("one that runs is refused: %v", err)
	}
}

// All of a cluster goes, and nothing of another.
func TestRemoveCluster(t *testing.T) {
	hosts := newHosts(t)
	state := hosts.cfg.State
	network, err := vpc.OpenDefault(state.VPCs())
	if err != nil {
		t.Fatal(err)
	}
	place := runnertest.NewPlace()
	hosts.runner = place.New(t.Context())
	ctx, end := context.WithCancel(t.Context())
	if err := place.New(ctx).Apply(t.Context(), []component.Spec{
		{Name: component.Etcd, Cluster: "blue"}, {Name: component.APIServer, Cluster: "blue"}, {Name: component.Scheduler, Cluster: "green"},
	}); err != nil {
		t.Fatal(err)
	}
	end() // the components go on
	for i, name := range []string{"blue", "green"} {
		if err := hosts.Host(t.Context(), asked(name)); err != nil {
			t.Fatal(err)
		}
		if err := identityservice.MakeClusterNodeRole(t.Context(), hosts.identityStore(), identityservice.DefaultAccount, name, false, time.Now()); err != nil {
			t.Fatal(err)
		}
		dir := state.Cluster(name)
		write(t, filepath.Join(dir.PKI(), "issued", "service.pem"), name)
		write(t, state.EgressSocket(name), name)
		id := "i-0000000000000000" + string(rune('1'+i))
		write(t, filepath.Join(state.Machine(id), "instance.json"), `{"id":"`+id+`","cluster":"`+name+`","privateIP":"10.0.0.11","privateDNSName":"ip-10-0-0-11.ec2.internal","zone":"us-east-1a"}`)
		if err := network.SetEndpoint(vpc.Endpoint{
			Cluster: name, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 31, 0, byte(4 + i)})}, APIServer: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(i+1)),
			EgressSocket: state.EgressSocket(name), PodCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(100 + i), 0, 0}), 16),
		}); err != nil {
			t.Fatal(err)
		}
	}
	blue := state.Cluster("blue")
	h := hosts.host(t.Context(), blue)
	time.AfterFunc(10*time.Millisecond, func() {
		<-h.ctx.Done()
		close(h.ended)
	})
	for range 2 {
		if err := hosts.Remove(t.Context(), asked("blue")); err != nil {
			t.Fatal(err)
		}
	}
	if hosts.cluster("blue") != nil {
		t.Error("it still runs")
	}
	if got, of := place.Ends(), component.ProcessPrefix("blue"); !slices.Equal(got, []string{of + component.APIServer, of + component.Etcd}) {
		t.Errorf("the components that ended are %q", got)
	}
	for path, want := range map[string]bool{
		string(blue): false, state.EgressSocket("blue"): false, state.Machine("i-00000000000000001"): false,
		state.Cluster("green").Record(): true, state.EgressSocket("green"): true, state.Machine("i-00000000000000002"): true,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	var bindings rbacv1.ClusterRoleBindingList
	if err := hosts.api.List(t.Context(), &bindings); err != nil || len(bindings.Items) != 0 {
		t.Errorf("its certificate controller may still read machines: %+v, %v", bindings.Items, err)
	}
	for name, want := range map[string]bool{"blue": false, "green": true} {
		if _, there, err := identityservice.FindClusterNodeRole(hosts.identityStore(), identityservice.DefaultAccount, name); there != want || err != nil {
			t.Errorf("the node role of %s is there: %v, %v", name, there, err)
		}
	}
	endpoints, err := network.Endpoints()
	if err != nil || len(endpoints) != 1 || endpoints[0].Cluster != "green" {
		t.Errorf("endpoints %+v, %v", endpoints, err)
	}
}

// A removal that was cut short is not undone by a service that finds what is left, and carried on before the name is
// used again.
func TestRemovalCutShort(t *testing.T) {
	hosts, object := newHosts(t), asked("blue")
	dir := hosts.cfg.State.Cluster("blue")
	if err := hosts.Host(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	write(t, dir.Deleting(), "")
	write(t, filepath.Join(dir.Etcd(), "member"), "of the one before")
	if h := hosts.host(t.Context(), dir); h != nil {
		t.Error("it is run")
	}
	if err := hosts.Host(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.Etcd()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data of the one before: %v", err)
	}
	if h := hosts.host(t.Context(), dir); h == nil {
		t.Error("it is not run")
	}
}
